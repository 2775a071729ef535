"""A process of its own that runs kernels on seeded rows, and says the digest of what they gave and how many it found on
disk. Its environment says for which processor they are compiled, and where they are kept.
"""

import hashlib
import json
import sys

import numpy as np

from graph_server.graph import attention_kernels, sum_kernels

NUM_ROWS, DEGREE = 40, 9
SUM_WIDTHS = (1, 41, 128)
SHAPE = (3, 5)


def main() -> None:
    random = np.random.default_rng(0)
    indptr = np.arange(0, NUM_ROWS * DEGREE + 1, DEGREE)
    columns = np.sort(random.integers(0, NUM_ROWS, (NUM_ROWS, DEGREE)).astype(np.int32), axis=1).reshape(-1)
    graph = (indptr, columns, np.ones(NUM_ROWS, np.bool_))

    def rows(width: int) -> np.ndarray:
        return random.normal(size=(NUM_ROWS, width)).astype(np.float32)

    results, all_rows = [], (0, NUM_ROWS)
    for width in SUM_WIDTHS:
        results.append(np.empty((NUM_ROWS, width), np.float32))
        sum_kernels.weighted_sum(*graph, rows(width), rows(1)[:, 0], results[-1], all_rows)

    heads, d = SHAPE
    source, out, saved, grad = (rows(n) for n in (heads * (d + 2), heads * d, heads * (d + 2), heads * (d + 2)))
    ids, dropout = np.arange(NUM_ROWS), (np.array([77], np.uint64), 100, np.float32(256 / 156))
    gathered = np.ascontiguousarray(source[:, : heads * (d + 1)])
    options = (SHAPE, np.float32(0.2), dropout)
    attention_kernels.attention_forward(*graph, gathered, ids, source[:, -heads:], *options, out, saved, all_rows)
    attention_kernels.attention_backward(*graph, rows(heads * (d + 3)), ids, source, saved, *options, grad, all_rows)

    digest = hashlib.sha256(b"".join(result.tobytes() for result in (*results, out, saved, grad))).hexdigest()
    kernels = [
        *(sum_kernels.sum_kernel(width, "float32") for width in SUM_WIDTHS),
        attention_kernels.forward_kernel(*SHAPE, "float32", drops=True),
        attention_kernels.backward_kernel(*SHAPE, "float32", drops=True, aged=False),
    ]
    found = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
    sys.stdout.write(json.dumps({"digest": digest, "kernels": len(kernels), "found": found}))


if __name__ == "__main__":
    main()
