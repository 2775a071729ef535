"""geom-gcn text: two tab-separated files and, beside them, the splits of the same project.

    out1_graph_edges.txt              header; source, target
    out1_node_feature_label.txt       header; id, features with commas between, label
    <name>_split_0.6_0.2_<k>.npz      train_mask, val_mask, test_mask; `split_index` picks k

The splits lie in the folder itself, or in a folder `splits` in it or above it. Where rows of features differ in
length (film) they list which of the features are 1. Edges are a set; the files do not say whether they go both ways.

Source: Pei et al. 2020 (arXiv:2002.05287), and the reader of its repository.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.archives import load_npz
from graph_server.ingest.edge_rows import edge_rows
from graph_server.ingest.edge_text import read_edges
from graph_server.ingest.ids import parse_ids
from graph_server.ingest.masks import as_mask
from graph_server.ingest.node_index import NodeIndex, unique_index
from graph_server.ingest.number_lists import split_numbers
from graph_server.ingest.raw_graph import Array, RawGraph, ReaderDefaults, damaged
from graph_server.ingest.text import Line, line_error, read_text_bytes

LOOKS_FOR = "geom-gcn: a folder with out1_graph_edges.txt and out1_node_feature_label.txt"
DEFAULTS: ReaderDefaults = {}

EDGES, VERTICES = "out1_graph_edges.txt", "out1_node_feature_label.txt"
_SPLIT_FILE = re.compile(r"_split_[\d.]+_[\d.]+_(?P<number>\d+)\.npz")


def detect(path: Path) -> bool:
    """A folder with both files."""
    return all((path / name).is_file() for name in (EDGES, VERTICES))


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`options.split_index` picks one of the split files."""
    file = path / VERTICES
    rows = _rows(file)
    index = _index(rows, file, options.negative_ids)
    edges = read_edges(path / EDGES, as_text=index.is_text)
    sources, targets, notes = edge_rows([edges], index, options.drop_unknown_edges)
    features, feature_notes = _features(rows, file)
    masks, split_note = _masks(path, index, options.split_index)
    return RawGraph(
        format="geom_gcn",
        node_ids=index.node_ids,
        sources=sources,
        targets=targets,
        features=features,
        labels=_labels(rows, file),
        masks=masks,
        edges_are_a_set=True,
        defaults=DEFAULTS,
        notes=(*notes, *feature_notes, split_note),
    )


def _rows(file: Path) -> list[Line]:
    """Lines of three fields, apart by tabs; the header is left out."""
    rows = []
    for number, raw in enumerate(read_text_bytes(file).splitlines(), start=1):
        if number == 1 or not raw.strip():
            continue
        fields = tuple(field.strip() for field in raw.decode("utf-8", "replace").split("\t"))
        if len(fields) != 3:
            raise line_error(file, number, raw[:80].decode("utf-8", "replace"), f"has {len(fields)} fields, not 3")
        rows.append(Line(number, fields, ""))
    return rows


def _index(rows: list[Line], file: Path, negative: bool) -> NodeIndex:
    numbers = [row.number for row in rows]
    ids = parse_ids([row.fields[0] for row in rows], numbers, file)
    return unique_index(ids, np.array(numbers), file, negative=negative)


def _features(rows: list[Line], file: Path) -> tuple[Array | scipy.sparse.csr_matrix, tuple[str, ...]]:
    numbers = [row.number for row in rows]
    values, lengths = split_numbers([row.fields[1] for row in rows], numbers, file)
    if (lengths == lengths[0]).all():
        return values.reshape(len(rows), -1).astype(np.float32), ()
    if not ((values >= 0) & (values == np.floor(values)) & (values < 2**31)).all():
        row = int(np.flatnonzero(lengths != lengths[0])[0])
        raise line_error(file, numbers[row], rows[row].fields[1], f"has {lengths[row]} features, not {lengths[0]}")
    starts = np.concatenate([[0], np.cumsum(lengths)])
    width = int(values.max(initial=0)) + 1
    matrix = scipy.sparse.csr_matrix(
        (np.ones(len(values), np.float32), values.astype(np.int64), starts), (len(rows), width)
    )
    matrix.data[:] = 1
    note = f"{file.name}: rows differ in length, so they were read as lists of which of {width} features are 1"
    return matrix, (note,)


def _labels(rows: list[Line], file: Path) -> Array:
    labels = [row.fields[2] for row in rows]
    whole = all(re.fullmatch(r"-?\d{1,18}", label) for label in labels)
    return np.array(labels, dtype=np.int64 if whole else np.str_)


def _masks(path: Path, index: NodeIndex, split_index: int) -> tuple[dict[str, Array] | None, str]:
    files = _split_files(path.resolve())
    if not files:
        return None, f"no split files {path.resolve().name}_split_*.npz were found in or beside the folder"
    if split_index not in files:
        raise DatasetError(
            what=f"split_index = {split_index}, but the split files are {', '.join(map(str, sorted(files)))}",
            why="each file is one split",
            fix="choose dataset.split_index among them",
        )
    file = files[split_index]
    arrays, _ = load_npz(file)
    names = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}
    if missing := [name for name in names.values() if name not in arrays]:
        raise damaged(file, f"it lacks {', '.join(missing)}")
    return {mask: _by_id(arrays[name], index, file) for mask, name in names.items()}, f"split of {file.name}"


def _by_id(values: Array, index: NodeIndex, file: Path) -> Array:
    """Masks are in the order of the ids, whatever the order of the lines."""
    mask = as_mask(values, index.num_nodes, 0, where=str(file))
    return mask if index.is_text else mask[np.argsort(np.argsort(index.node_ids, kind="stable"), kind="stable")]


def _split_files(folder: Path) -> Mapping[int, Path]:
    for place in (folder, folder / "splits", folder.parent / "splits", folder.parent.parent / "splits"):
        found = {}
        for file in place.glob("*.npz") if place.is_dir() else ():
            name = file.name
            match = _SPLIT_FILE.fullmatch(name.removeprefix(folder.name)) if name.startswith(folder.name) else None
            if match:
                found[int(match["number"])] = file
        if found:
            return found
    return {}


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    place, rows = folder / "ring", np.arange(4)
    place.mkdir()
    (place / EDGES).write_text("node_id\tnode_id\n0\t1\n1\t2\n2\t3\n3\t0\n", encoding="utf-8")
    vertices = "node_id\tfeature\tlabel\n0\t1,0\t0\n1\t0,1\t1\n2\t1,1\t0\n3\t2,0\t1\n"
    (place / VERTICES).write_text(vertices, encoding="utf-8")
    file = place / "ring_split_0.6_0.2_0.npz"
    np.savez(file, train_mask=rows < 2, val_mask=rows == 2, test_mask=rows == 3)
    return place
