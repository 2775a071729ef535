"""What fuzzing starts from: each format's own example, the same data in other dress, and the kept corpus.

The corpus is one archive per format: `<number>/PATH` says what `dataset.path` would be, `<number>/files/` holds the
files. An input is kept for what once broke a reader, or for being the smallest that a reader answers in its own words.
"""

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet
import scipy.sparse

from common import plugins
from graph_server.ingest.detect import FORMATS
from tests.conformance import dataset_proofs as proofs
from tests.graph_server.fuzz.mutations import Files

CORPUS = Path(__file__).parent / "corpus"
NAMES = plugins.names(FORMATS)
RING = "0,1\n1,2\n2,3\n3,0\n"
FEATURES = np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32)


class Seed(NamedTuple):
    """path: of the dataset, below the folder that `files` are written to."""

    path: str
    files: Files


def seeds(name: str, folder: Path) -> list[Seed]:
    """Of one format; `folder` is a new one, to write in."""
    path = proofs.example(plugins.load(FORMATS, name), folder)
    own = Seed(str(path.relative_to(folder)), proofs.contents(folder))
    others = OTHERS.get(name)
    return [own, *(others() if others else ()), *corpus(name)]


def corpus(name: str) -> list[Seed]:
    file = CORPUS / f"{name}.zip"
    if not file.is_file():
        return []
    found: dict[str, Files] = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.namelist():
            number, _, rest = member.partition("/")
            found.setdefault(number, {})[rest] = archive.read(member)
    return [
        Seed(files.pop("PATH").decode(), {name.removeprefix("files/"): content for name, content in files.items()})
        for files in found.values()
    ]


def keep(name: str, inputs: Iterable[Seed]) -> None:
    """Writes the corpus of one format anew; the same inputs make the same bytes."""
    CORPUS.mkdir(exist_ok=True)
    with zipfile.ZipFile(CORPUS / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, seed in enumerate(inputs):
            members = {"PATH": seed.path.encode()} | {f"files/{file}": data for file, data in seed.files.items()}
            for member, data in members.items():
                archive.writestr(zipfile.ZipInfo(f"{number:03}/{member}"), data, zipfile.ZIP_DEFLATED)


def _edge_lists() -> list[Seed]:
    folder = {"features.csv": b"id,f,g\nb,1,0\na,0,1\nc,nan,2\n", "labels.csv": b"id,y,split\na,1,train\nb,0,test\n"}
    comments = b"# Undirected graph: ring\n# Nodes: 4 Edges: 4\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n2\t3\n3\t0\n"
    return [
        Seed("ring.txt", {"ring.txt": comments}),
        Seed("ring.txt.gz", {"ring.txt.gz": gzip.compress(comments, mtime=0)}),
        Seed("ring.csv.zst", {"ring.csv.zst": pyarrow.compress(RING.encode(), codec="zstd", asbytes=True)}),
        Seed("ring.csv.bz2", {"ring.csv.bz2": bz2.compress(RING.encode())}),
        Seed("out.ring", {"out.ring": b"% asym weighted\n% 3 3 3\n1 2 0.5 1300000000\n2 3 1.5 1300000001\n"}),
        Seed("ring.csv", {"ring.csv": b'src,dst,weight\r\n"a b",c,1\r\nc,"a b",-2\r\n'}),
        Seed(".", {"edges.csv": b"a,b\nb,c\n", **folder}),
        Seed(".", {"edges/part-1.csv": b"0,1\n1,2\n", "edges/part-10.csv.gz": gzip.compress(b"2,3\n3,0\n", mtime=0)}),
        Seed(".", {"edges.npy": _npy(np.array([[0, 1, 2], [1, 2, 0]])), "features.npy": _npy(np.eye(3)),
                   "labels.npy": _npy(np.array([0, 1, 0])), "masks.npy": _npy(np.eye(3, dtype=bool))}),
    ]  # fmt: skip


def _matrices() -> list[Seed]:
    real = b"%%MatrixMarket matrix coordinate real symmetric\n% by hand\n\n3 3 2\n2 1 0.5\n3 2 -1e3\n"
    return [Seed("m.mtx", {"m.mtx": real}), Seed("m.mtx.gz", {"m.mtx.gz": gzip.compress(real, mtime=0)})]


def _arrays() -> list[Seed]:
    matrix = scipy.sparse.csr_matrix((np.ones(4), ([0, 1, 2, 3], [1, 2, 3, 0])), shape=(4, 4))
    packed, texts, saved = io.BytesIO(), io.BytesIO(), io.BytesIO()
    ends = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    np.savez_compressed(packed, edge_index=ends, x=FEATURES, y=np.array([0, 1, 0, 1], np.int8), train_idx=np.arange(2))
    np.savez(texts, src=ends[0], dst=ends[1], node_ids=np.array(["a", "b", "c", "d"], object), y=np.eye(4))
    scipy.sparse.save_npz(saved, matrix)
    folder = {f"{stem}.npy": _npy(array) for stem, array in {"edge_index": ends, "x": FEATURES, "y": ends[0]}.items()}
    inputs = [Seed("ring.npz", {"ring.npz": each.getvalue()}) for each in (packed, texts, saved)]
    return [*inputs, Seed(".", folder)]


def _tables() -> list[Seed]:
    words = pyarrow.array(["train", "valid", "test", None]).dictionary_encode()
    vertices = {"nodeId": ["a", "b", "c", "d"], "f1": [1, 2, None, 4], "f2": [0.5, 1.5, 2.5, 3.5], "split": words}
    edges = {"src": ["a", "b", "c"], "dst": ["b", "c", "d"], "etype": ["x", "x", "x"], "weight": [1.0, 2.0, 3.0]}
    alone = _parquet({"source": [0, 1, 2], "target": [1, 2, 0]}, "snappy")
    both = {
        "nodes.parquet": _parquet(vertices | {"y": [0, 1, -1, 1]}, "zstd"),
        "edges.parquet": _parquet(edges, "none"),
    }
    return [Seed(".", both), Seed("edges.parquet", {"edges.parquet": alone})]


def _many_labels() -> list[Seed]:
    packed = io.BytesIO()
    scipy.sparse.save_npz(packed, scipy.sparse.csr_matrix(np.eye(3, k=1)))
    files = {"adj_full.npz": packed.getvalue(), "feats.npy": _npy(np.eye(3))}
    files |= {
        "class_map.json": b'{"0": [0, 1], "2": [1, 1], "1": [0, 0]}',
        "role.json": b'{"tr": [0], "va": [2], "te": []}',
    }
    return [Seed(".", files)]


def _binary_ogb() -> list[Seed]:
    data, labels = io.BytesIO(), io.BytesIO()
    np.savez(
        data, edge_index=np.array([[0, 1, 2], [1, 2, 0]]), num_nodes_list=[3], num_edges_list=[3], node_feat=np.eye(3)
    )
    np.savez(labels, node_label=np.array([[0.0], [np.nan], [1.0]]))
    split = {
        f"split/time/{mask}.csv.gz": gzip.compress(b"%d\n" % row, mtime=0) for row, mask in enumerate(proofs.MASK_NAMES)
    }
    return [Seed(".", {"raw/data.npz": data.getvalue(), "raw/node-label.npz": labels.getvalue(), **split})]


def _npy(array: np.ndarray) -> bytes:
    packed = io.BytesIO()
    np.save(packed, array, allow_pickle=False)
    return packed.getvalue()


def _parquet(columns: dict[str, object], compression: str) -> bytes:
    packed = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), packed, compression=compression)
    return packed.getvalue()


OTHERS: dict[str, Callable[[], list[Seed]]] = {
    "edge_list": _edge_lists,
    "matrix_market": _matrices,
    "arrays": _arrays,
    "parquet": _tables,
    "graphsaint": _many_labels,
    "ogb": _binary_ogb,
}
