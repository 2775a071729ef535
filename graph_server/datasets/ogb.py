"""OGB node-property folders, as their package unpacks them; text (`.csv.gz`, no header) or binary (`.npz`).

    raw/edge.csv.gz  node-feat.csv.gz  node-label.csv.gz  num-node-list.csv.gz  num-edge-list.csv.gz
    raw/data.npz {edge_index, num_nodes_list, node_feat}  node-label.npz {node_label}
    split/<scheme>/{train,valid,test}.csv.gz                        row numbers
    raw/relations/<source>___<name>___<target>/edge.csv.gz          several kinds of vertices: one is picked
        node-feat/<kind>/node-feat.csv.gz  node-label/<kind>/node-label.csv.gz  num-node-dict.csv.gz

Products and proteins store each pair once; arxiv, mag and papers100M are directed. A label that is NaN is missing.
Features of edges (raw/edge-feat.csv.gz, edge_feat) are weights by `edge_weight: edge_feat`; `edge_feat:3` is the third.
Folders of many graphs (`ogbg`) are refused.

Source: Hu et al. 2020 (arXiv:2005.00687), and the reader of its repository.
"""

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.archives import load_npz, member_names
from graph_server.ingest.edge_rows import row_table, weighted_edge_rows
from graph_server.ingest.edge_weights import no_such_weights
from graph_server.ingest.heterogeneous import Relation, pick_relation
from graph_server.ingest.masks import listed_masks
from graph_server.ingest.memory import check_num_nodes
from graph_server.ingest.node_index import NodeIndex
from graph_server.ingest.number_text import read_numbers, read_whole_numbers
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph, ReaderDefaults, damaged
from graph_server.ingest.text import lines_of, read_text_bytes

LOOKS_FOR = "OGB: a folder with raw/edge.csv.gz or raw/data.npz, raw/num-node-list.csv.gz and split/"
DEFAULTS: ReaderDefaults = {}

UNDIRECTED = {"products": True, "proteins": True, "arxiv": False, "mag": False, "papers100m": False}
"""Whether the edges are stored once per pair. Source: `add_inverse_edge` in the package's list of datasets."""

EDGE_FEATURES = "edge_feat"
_MARKS = ("num-node-list", "num-node-dict", "edge", "triplet-type-list")


class _Part(NamedTuple):
    """The one kind of vertices and edges that is read; "" when there is only one."""

    root: Path
    relation: Relation | None = None

    def table(self, stem: str) -> Path:
        """A table of vertices' rows."""
        raw = self.root / "raw"
        return _table(raw / stem / self.relation.source if self.relation else raw, stem)

    @property
    def edges(self) -> Path:
        return self.edge_table("edge")

    def edge_table(self, stem: str) -> Path:
        raw = self.root / "raw"
        return _table(raw / "relations" / "___".join(self.relation) if self.relation else raw, stem)


def detect(path: Path) -> bool:
    """A folder whose `raw/` holds such files, or that `raw/` itself."""
    raw = _root(path) / "raw"
    if not raw.is_dir():
        return False
    return any(_table(raw, stem).is_file() for stem in _MARKS) or "num_nodes_list" in member_names(raw / "data.npz")


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`edge_type` and `node_type` pick a part of a folder with several kinds; `split/` is the split."""
    root = _root(path)
    _refuse_many_graphs(root)
    part = _Part(root, _relation(root, options))
    binary = (root / "raw" / "data.npz").is_file()
    file, ends, num_nodes, features = _binary(root) if binary else _text(part)
    check_num_nodes(num_nodes, root)
    weights = None if options.edge_weight is None else _weights(part, options.edge_weight, len(ends[0]))
    table = row_table(file, ends[0], ends[1], weights)
    edges = weighted_edge_rows([table], NodeIndex(np.arange(num_nodes)), options.drop_unknown_edges)
    labels = _labels(part, num_nodes)
    masks, split_note = _masks(part, num_nodes)
    name = root.resolve().name.lower().replace("-", "_").removeprefix("ogbn_")
    return RawGraph(
        format="ogb",
        node_ids=np.arange(num_nodes, dtype=np.int64),
        sources=edges.sources,
        targets=edges.targets,
        weights=edges.weights,
        features=features,
        labels=labels,
        masks=masks,
        undirected=UNDIRECTED.get(name),
        defaults=DEFAULTS,
        notes=(*edges.notes, split_note, *_unused(root, weights is not None)),
        why_no_features=f"{root} has no raw/node-feat.csv.gz" if features is None else "",
        why_no_labels=f"{root} has no raw/node-label.csv.gz" if labels is None else "",
        edge_type=str(part.relation) if part.relation else None,
        node_type=part.relation.source if part.relation else None,
    )


def _root(path: Path) -> Path:
    return path.parent if path.name == "raw" and path.is_dir() else path


def _table(folder: Path, stem: str) -> Path:
    """The packed file, or the one that a user has unpacked."""
    plain = folder / f"{stem}.csv"
    return plain if plain.is_file() else folder / f"{stem}.csv.gz"


def _refuse_many_graphs(root: Path) -> None:
    sizes = _table(root / "raw", "num-node-list")
    num_graphs = len(read_whole_numbers(sizes)) if sizes.is_file() else 1
    if num_graphs > 1 or _table(root / "raw", "graph-label").is_file():
        raise DatasetError(
            what=f"{root} holds {num_graphs} graphs, each with a label of its own (a graph-level dataset)",
            why="a job here classifies the vertices of one graph",
            fix="give a node-level dataset, such as ogbn_arxiv; join the graphs into one if vertices have labels",
        )


def _relation(root: Path, options: DatasetSpec) -> Relation | None:
    triplets = _table(root / "raw", "triplet-type-list")
    if not triplets.is_file():
        return None
    lines = list(lines_of(read_text_bytes(triplets), triplets))
    if not lines or any(len(line.fields) != 3 for line in lines):
        raise damaged(triplets, "needed: source kind, name, target kind on each line")
    return pick_relation([Relation(*line.fields) for line in lines], options.edge_type, options.node_type, root)


def _text(part: _Part) -> tuple[Path, tuple[Array, Array], int, Array | None]:
    _refuse_missing(part)
    edges = read_whole_numbers(part.edges)
    if len(edges) and edges.shape[1] != 2:
        raise damaged(part.edges, f"{edges.shape[1]} columns; needed: source and target")
    sources, targets = (edges[:, 0], edges[:, -1]) if len(edges) else (edges.reshape(-1), edges.reshape(-1))
    features = part.table("node-feat")
    matrix = read_numbers(features) if features.is_file() else None
    num_nodes = _num_nodes(part, matrix)
    _check_counts(part, len(edges), num_nodes)
    if matrix is not None:
        _check_rows(features, matrix, num_nodes)
    return part.edges, (sources, targets), num_nodes, matrix


def _refuse_missing(part: _Part) -> None:
    needed = [part.edges, part.table("node-feat"), part.table("node-label")]
    if part.edges.is_file():
        return
    missing = [str(file.relative_to(part.root)) for file in needed if not file.is_file()]
    raise DatasetError(
        what=f"{part.root} lacks {', '.join(missing)}{'' if (part.root / 'split').is_dir() else ', split/'}",
        why="without its edges there is no graph; the rest could be done without",
        fix="fetch the whole dataset again: the OGB package unpacks raw/ and split/",
    )


def _num_nodes(part: _Part, matrix: Array | None) -> int:
    raw, kind = part.root / "raw", part.relation.source if part.relation else ""
    if not kind and (listed := _table(raw, "num-node-list")).is_file():
        return _number(listed)
    if kind and (listed := _table(raw, "num-node-dict")).is_file():
        lines = list(lines_of(read_text_bytes(listed), listed))
        counts = dict(zip(lines[0].fields, lines[1].fields, strict=False)) if len(lines) == 2 else {}
        if not counts.get(kind, "").isdigit():
            raise damaged(listed, f"it holds no number of vertices for {kind}")
        return int(counts[kind])
    if matrix is not None:
        return len(matrix)
    raise DatasetError(
        what=f"{part.root} lacks raw/num-node-list.csv.gz and raw/node-feat.csv.gz",
        why="vertices without edges stand in no other file, so their number would be a guess",
        fix="fetch raw/num-node-list.csv.gz again: it is one line with the number of vertices",
    )


def _check_counts(part: _Part, num_edges: int, num_nodes: int) -> None:
    listed = _table(part.edges.parent, "num-edge-list")
    announced = _number(listed) if listed.is_file() else num_edges
    if announced != num_edges:
        raise damaged(part.edges, f"it holds {num_edges} edges, and {listed.name} announces {announced}")


def _number(file: Path) -> int:
    numbers = read_whole_numbers(file)
    if not numbers.size:
        raise damaged(file, "it is empty; needed: one whole number")
    return int(numbers[0, 0])


def _check_rows(path: Path, rows: Array, num_nodes: int) -> None:
    if rows.ndim not in (1, 2) or len(rows) != num_nodes:
        raise damaged(path, f"it has shape {rows.shape} for {num_nodes} vertices")


def _binary(root: Path) -> tuple[Path, tuple[Array, Array], int, Array | None]:
    file = root / "raw" / "data.npz"
    arrays, _ = load_npz(file, only=("edge_index", "num_nodes_list", "num_edges_list", "node_feat"))
    missing = [name for name in ("edge_index", "num_nodes_list") if name not in arrays]
    if missing:
        raise damaged(file, f"it lacks {', '.join(missing)}")
    edges, sizes = arrays["edge_index"], arrays["num_nodes_list"].reshape(-1)
    if edges.ndim != 2 or edges.shape[0] != 2 or len(sizes) != 1 or sizes.dtype.kind not in "iu":
        raise damaged(file, f"edge_index has shape {edges.shape}, num_nodes_list {sizes.shape}; needed: (2, E), (1,)")
    features = arrays.get("node_feat")
    if features is not None:
        _check_rows(file, features, int(sizes[0]))
    return file, (edges[0], edges[1]), int(sizes[0]), features


def _labels(part: _Part, num_nodes: int) -> Array | None:
    packed, text = part.root / "raw" / "node-label.npz", part.table("node-label")
    if packed.is_file():
        file, labels = packed, load_npz(packed, only=("node_label",))[0].get("node_label")
    elif text.is_file():
        file, labels = text, read_numbers(text, np.float64)
    else:
        return None
    if labels is None or labels.dtype.kind not in "biuf":
        raise damaged(file, "it holds no numbers named node_label")
    _check_rows(file, labels, num_nodes)
    return labels


def _masks(part: _Part, num_nodes: int) -> tuple[dict[str, Array] | None, str]:
    folder = part.root / "split"
    schemes = sorted(entry for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    if not schemes:
        return None, f"{part.root.name} has no split/: its usual split is not here"
    if len(schemes) > 1:
        raise DatasetError(
            what=f"{folder} holds {len(schemes)} splits: {', '.join(scheme.name for scheme in schemes)}",
            why="each is another task",
            fix="keep one of them in split/",
        )
    place = schemes[0] / part.relation.source if part.relation else schemes[0]
    files = {name: _table(place, name) for name in MASK_NAMES}
    missing = [file.name for file in files.values() if not file.is_file()]
    if missing:
        pickled = " (split_dict.pt is a torch pickle: it is not read)" if (place / "split_dict.pt").is_file() else ""
        raise DatasetError(
            what=f"{place} lacks {', '.join(missing)}{pickled}",
            why="a split is three lists of row numbers, one a line",
            fix="write them, or remove split/ and set dataset.split",
        )
    lists = {name: read_whole_numbers(file).reshape(-1) for name, file in files.items()}
    return listed_masks(lists, num_nodes, place), f"split: {schemes[0].name}"


def _weights(part: _Part, wanted: str, num_edges: int) -> Array:
    """[E]: the column of the edges' features that is named, counted from 1."""
    packed, text = part.root / "raw" / "data.npz", part.edge_table("edge-feat")
    if packed.is_file():
        file, rows = packed, load_npz(packed, only=(EDGE_FEATURES,))[0].get(EDGE_FEATURES)
    else:
        file, rows = text, read_numbers(text) if text.is_file() else None
    if rows is None:
        raise no_such_weights(wanted, part.root, ())
    if rows.ndim not in (1, 2) or len(rows) != num_edges or rows.dtype.kind not in "biuf":
        raise damaged(file, f"it has shape {rows.shape} for {num_edges} edges")
    columns = rows.reshape(num_edges, -1).T
    names = [f"{EDGE_FEATURES}:{number}" for number in range(1, len(columns) + 1)]
    names = [EDGE_FEATURES] if len(columns) == 1 else names
    if wanted not in names:
        raise no_such_weights(wanted, file, names)
    chosen: Array = columns[names.index(wanted)]
    return chosen


def _unused(root: Path, is_weighted: bool) -> list[str]:
    used = (*_MARKS, "node-feat", "node-label", "num-edge-list", "nodetype-has-label", "nodetype-has-split")
    used += ("edge-feat",) * is_weighted
    names = sorted(file.name for file in (root / "raw").iterdir() if file.name.endswith((".csv.gz", ".csv")))
    others = [name for name in names if name.split(".")[0] not in used]
    return [f"not used: raw/{', raw/'.join(others)}"] if others else []


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    files = {
        "raw/edge": "0,1\n1,2\n2,3\n3,0\n",
        "raw/node-feat": "1,0\n0,1\n1,1\n2,0\n",
        "raw/node-label": "0\n1\n0\n1\n",
        "raw/num-node-list": "4\n",
        "raw/num-edge-list": "4\n",
        "split/random/train": "0\n1\n",
        "split/random/valid": "2\n",
        "split/random/test": "3\n",
    }
    for name, content in files.items():
        file = folder / f"{name}.csv.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content.encode(), mtime=0))
    return folder
