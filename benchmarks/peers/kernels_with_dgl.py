"""DGL's kernels, one run for each line of input, `sum WIDTH` or `attention HEADS WIDTH`; answers with the seconds.

python kernels_with_dgl.py CSR.npz NUM_THREADS
"""

import functools
import sys
import time

import dgl
import numpy as np
import torch


def main():
    path, num_threads = sys.argv[1:]
    torch.set_num_threads(int(num_threads))
    with np.load(path) as file:
        indptr, indices = torch.from_numpy(file["indptr"]), torch.from_numpy(file["indices"].astype(np.int64))
    graph = dgl.graph(("csc", (indptr, indices, torch.arange(len(indices))))).int()
    num_rows = graph.num_nodes()

    @functools.cache
    def rows(*shape):
        return torch.randn(num_rows, *shape)

    def attention(heads, width):
        scores = graph_scores(rows(heads, 1), rows(heads, 1))
        return dgl.ops.u_mul_e_sum(graph, rows(heads, width), dgl.ops.edge_softmax(graph, scores))

    def graph_scores(source, target):
        return torch.nn.functional.leaky_relu(dgl.ops.u_add_v(graph, source, target), 0.2)

    kernels = {"sum": lambda width: dgl.ops.copy_u_sum(graph, rows(width)), "attention": attention}
    with torch.no_grad():
        for line in sys.stdin:
            kernel, *shape = line.split()
            began = time.perf_counter()
            kernels[kernel](*map(int, shape))
            print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main()
