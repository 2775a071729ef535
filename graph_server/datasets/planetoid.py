"""Planetoid: `ind.<name>.{x,y,tx,ty,allx,ally,graph,test.index}`, Python-2 pickles of Cora, CiteSeer and PubMed.

Train is the first len(y) rows, valid the next 500, test the ids of `test.index`, which is not sorted. Ids that
`test.index` leaves out (15 in CiteSeer) are vertices without features, label and edges: they are filled in, and said.
Neighbour lists are sets and the graph is undirected.

Source: Yang, Cohen, Salakhutdinov 2016 (arXiv:1603.08861), and the files of its repository.
"""

import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.defaults import CITATION_GRAPHS
from graph_server.ingest.raw_graph import Array, RawGraph, damaged, first_few
from graph_server.ingest.restricted_unpickler import load_pickle

LOOKS_FOR = "Planetoid: ind.<name>.{x,y,tx,ty,allx,ally,graph,test.index} in one folder"
DEFAULTS = CITATION_GRAPHS
PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
NUM_VALID = 500

_NAME = re.compile(r"ind\.(?P<name>.+)\.(x|y|tx|ty|allx|ally|graph|test\.index)")


def detect(path: Path) -> bool:
    """A folder that holds such files, or one of them."""
    return bool(_names_in(path)) if path.is_dir() else _NAME.fullmatch(path.name) is not None


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """The public split comes with the files; `options` changes nothing here."""
    files = _files(path)
    parts = {part: load_pickle(file) for part, file in files.items() if part != "test.index"}
    test_ids = _test_ids(files["test.index"])
    try:
        _check_shapes(parts, test_ids, files["graph"])
        return _assemble(parts, test_ids, files["graph"])
    except (AttributeError, TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
        raise damaged(files["graph"].parent, error) from error


def _names_in(folder: Path) -> list[str]:
    matches = (_NAME.fullmatch(file.name) for file in folder.iterdir())
    return sorted({match["name"] for match in matches if match})


def _files(path: Path) -> Mapping[str, Path]:
    match = _NAME.fullmatch(path.name)
    folder, names = (path, _names_in(path)) if path.is_dir() else (path.parent, [match["name"]] if match else [])
    if len(names) != 1:
        raise DatasetError(
            what=f"{folder} holds {len(names)} Planetoid datasets: {', '.join(names) or 'none'}",
            why="one job trains on one dataset",
            fix=f"name a file of the one you mean, such as {folder}/ind.cora.graph",
        )
    files = {part: folder / f"ind.{names[0]}.{part}" for part in PARTS}
    missing = [file.name for file in files.values() if not file.is_file()]
    if missing:
        raise DatasetError(
            what=f"{folder} lacks {', '.join(missing)}",
            why="a Planetoid dataset is eight files",
            fix="fetch the missing files from the dataset's source",
        )
    return files


def _test_ids(file: Path) -> Array:
    lines = file.read_text(encoding="latin1").split()
    for number, line in enumerate(lines, start=1):
        if not (line.isascii() and line.isdigit() and len(line) <= 18):
            raise damaged(f"{file}:{number}", f"{line[:80]!r} is not a vertex id")
    return np.array(lines, dtype=np.int64)


def _check_shapes(parts: Mapping[str, Any], test_ids: Array, where: Path) -> None:
    rows = {part: parts[part].shape[0] for part in ("x", "y", "tx", "ty", "allx", "ally")}
    first_test = rows["allx"]
    wrong = (
        len({parts[part].shape[1] for part in ("x", "tx", "allx")}) != 1
        or len({parts[part].shape[1] for part in ("y", "ty", "ally")}) != 1
        or rows["x"] != rows["y"]
        or rows["tx"] != rows["ty"]
        or rows["allx"] != rows["ally"]
        or len(np.unique(test_ids)) != rows["tx"]
        or len(test_ids) != rows["tx"]
        or (len(test_ids) > 0 and int(test_ids.min()) < first_test)
    )
    if wrong:
        raise damaged(where.parent, f"the parts do not fit together: rows {rows}, {len(test_ids)} test ids")


def _assemble(parts: Mapping[str, Any], test_ids: Array, where: Path) -> RawGraph:
    num_trained = parts["allx"].shape[0]
    num_nodes = max(num_trained, int(test_ids.max(initial=-1)) + 1, max(parts["graph"], default=-1) + 1)
    known = num_trained + len(test_ids)
    if num_nodes > 2 * known:
        raise ValueError(f"a vertex has the number {num_nodes - 1}, and there are rows for {known}")
    sources, targets = _edges(parts["graph"], num_nodes, where)
    gaps = np.setdiff1d(np.arange(num_trained, num_nodes), test_ids)
    notes = [f"vertices {first_few(gaps, 15)} are missing from test.index: kept, no features, no label"] * bool(
        len(gaps)
    )
    return RawGraph(
        format="planetoid",
        node_ids=np.arange(num_nodes, dtype=np.int64),
        sources=sources,
        targets=targets,
        features=_features(parts["allx"], parts["tx"], test_ids, num_nodes),
        labels=_labels(parts["ally"], parts["ty"], test_ids, num_nodes),
        masks=_public_split(parts["y"].shape[0], num_trained, test_ids, num_nodes),
        edges_are_a_set=True,
        undirected=True,
        usual_normalization="row",
        defaults=DEFAULTS,
        notes=tuple(notes),
    )


def _edges(neighbours: Mapping[int, list[int]], num_nodes: int, where: Path) -> tuple[Array, Array]:
    degrees = np.fromiter((len(row) for row in neighbours.values()), np.int64, len(neighbours))
    sources = np.repeat(np.fromiter(neighbours.keys(), np.int64, len(neighbours)), degrees)
    targets = np.fromiter(chain.from_iterable(neighbours.values()), np.int64, int(degrees.sum()))
    if len(targets) and (min(sources.min(), targets.min()) < 0 or targets.max() >= num_nodes):
        raise damaged(where, f"a neighbour lies outside 0 .. {num_nodes - 1}")
    return sources, targets


def _features(allx: scipy.sparse.csr_matrix, tx: Any, test_ids: Array, num_nodes: int) -> scipy.sparse.csr_matrix:
    place = np.full(num_nodes, -1)
    place[: allx.shape[0]] = np.arange(allx.shape[0])
    place[test_ids] = allx.shape[0] + np.arange(len(test_ids))
    empty_row = scipy.sparse.csr_matrix((1, allx.shape[1]), dtype=allx.dtype)
    return scipy.sparse.vstack([allx, tx, empty_row], format="csr")[place]


def _labels(ally: Array, ty: Array, test_ids: Array, num_nodes: int) -> Array:
    """One-hot rows become classes; an all-zero row is unlabelled, not class 0."""
    one_hot = np.zeros((num_nodes, ally.shape[1]), dtype=np.int64)
    one_hot[: len(ally)] = ally
    one_hot[test_ids] = ty
    return np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)


def _public_split(num_train: int, num_trained: int, test_ids: Array, num_nodes: int) -> Mapping[str, Array]:
    rows = np.arange(num_nodes)
    valid = (rows >= num_train) & (rows < min(num_train + NUM_VALID, num_trained))
    return {"train": rows < num_train, "valid": valid, "test": np.isin(rows, test_ids)}
