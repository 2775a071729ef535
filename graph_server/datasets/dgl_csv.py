"""DGL CSVDataset folders of one homogeneous graph, or of which one homogeneous part is picked.

    meta.yaml     dataset_name, separator, edge_data: [{file_name, etype, src_id_field, dst_id_field}],
                  node_data: [{file_name, ntype, node_id_field}]
    nodes.csv     node_id, label, train_mask, val_mask, test_mask, feat: "0.1, 0.2"
    edges.csv     src_id, dst_id; weights: the column that `edge_weight` names

Vertices keep the order of their file (DGL sorts them by id). Folders of many graphs are refused. The files do not say
whether edges go both ways.

Source: the documentation of DGL's CSVDataset, and its reader.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow
import pyarrow.csv

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.arrow_columns import column_names, id_values
from graph_server.ingest.edge_rows import weighted_edge_rows
from graph_server.ingest.edge_text import EdgeTable
from graph_server.ingest.edge_weights import ignored_columns, no_such_weights, weight_column
from graph_server.ingest.heterogeneous import Relation, pick_relation
from graph_server.ingest.node_index import unique_index
from graph_server.ingest.node_table import read_node_table
from graph_server.ingest.number_text import line_refusal
from graph_server.ingest.raw_graph import RawGraph, ReaderDefaults, damaged
from graph_server.ingest.streams import open_unpacked
from graph_server.ingest.yaml_files import holds_keys, named_file, read_yaml

LOOKS_FOR = "DGL CSVDataset: a folder with meta.yaml that names edge_data and node_data"
DEFAULTS: ReaderDefaults = {}

META = "meta.yaml"
_FIRST_LINE = 2
"""The line of the first row, below the header."""

Field = Annotated[str, msgspec.Meta(min_length=1)]


class _Edges(msgspec.Struct, frozen=True):
    file_name: Field
    etype: tuple[str, str, str] = ("_N", "_E", "_N")
    src_id_field: str = "src_id"
    dst_id_field: str = "dst_id"


class _Nodes(msgspec.Struct, frozen=True):
    file_name: Field
    ntype: str = "_N"
    node_id_field: str = "node_id"


class _Meta(msgspec.Struct, frozen=True):
    edge_data: list[_Edges]
    node_data: list[_Nodes]
    separator: Annotated[str, msgspec.Meta(min_length=1, max_length=1)] = ","
    graph_data: Any = None


def detect(path: Path) -> bool:
    """By the keys of meta.yaml."""
    return path.is_dir() and holds_keys(path / META, ("edge_data", "node_data"))


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`edge_type` and `node_type` pick a part when meta.yaml names several."""
    meta = read_yaml(path / META, _Meta)
    relation = pick_relation(
        [Relation(*part.etype) for part in meta.edge_data], options.edge_type, options.node_type, path
    )
    edge_part = next(part for part in meta.edge_data if Relation(*part.etype) == relation)
    node_part = _nodes_of(meta.node_data, relation.source, path)
    edge_file, file = (named_file(path / META, part.file_name) for part in (edge_part, node_part))
    edges, nodes = _csv(edge_file, meta.separator), _csv(file, meta.separator)
    _refuse_many_graphs(meta, nodes, path)
    table = read_node_table(
        _renamed(nodes, node_part.node_id_field, file), file, node_type=None, first_line=_FIRST_LINE
    )
    assert table.ids is not None, "the column was renamed"
    index = unique_index(table.ids, table.lines, file, negative=options.negative_ids)
    ends = _ends(edges, edge_part, edge_file, options.edge_weight)
    found = weighted_edge_rows([ends], index, options.drop_unknown_edges)
    is_part = len(meta.edge_data) > 1 or len(meta.node_data) > 1 or relation.name != "_E"
    return RawGraph(
        format="dgl_csv",
        node_ids=index.node_ids,
        sources=found.sources,
        targets=found.targets,
        features=table.features,
        labels=table.labels,
        masks=table.masks,
        defaults=DEFAULTS,
        notes=(*found.notes, *table.notes),
        why_no_features=f"{file.name} has no column feat",
        why_no_labels=f"{file.name} has no column label",
        edge_type=str(relation) if is_part else None,
        node_type=relation.source if is_part else None,
        weights=found.weights,
    )


def _nodes_of(parts: Sequence[_Nodes], kind: str, path: Path) -> _Nodes:
    found = [part for part in parts if part.ntype == kind]
    if len(found) != 1:
        raise damaged(path / META, f"node_data names {len(found)} files for vertices of the type {kind}")
    return found[0]


def _csv(file: Path, separator: str) -> pyarrow.Table:
    try:
        with open_unpacked(file) as stream:
            table = pyarrow.csv.read_csv(
                stream,
                pyarrow.csv.ReadOptions(use_threads=False, block_size=64 << 20),
                pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=False),
            )
    except pyarrow.ArrowInvalid as error:
        raise line_refusal(file, error) from error
    except (OSError, pyarrow.ArrowException) as error:
        raise damaged(file, error) from error
    column_names(table, file)
    return table


def _refuse_many_graphs(meta: _Meta, nodes: pyarrow.Table, path: Path) -> None:
    graphs = len(nodes.column("graph_id").unique()) if "graph_id" in nodes.column_names else 1
    if graphs > 1:
        raise DatasetError(
            what=f"{path} holds {graphs} graphs (column graph_id of {meta.node_data[0].file_name})",
            why="a job here trains on the vertices of one graph",
            fix="keep the rows of one graph, or make ids that differ between graphs and remove the column graph_id",
        )


def _renamed(nodes: pyarrow.Table, id_field: str, file: Path) -> pyarrow.Table:
    """With the id column under a name that is known, and without the number of the graph."""
    _refuse_absent(nodes, (id_field,), file)
    kept = [name for name in nodes.column_names if name != "graph_id"]
    return nodes.select(kept).rename_columns(["id" if name == id_field else name for name in kept])


def _ends(edges: pyarrow.Table, part: _Edges, file: Path, weight: str | None) -> EdgeTable:
    names = (part.src_id_field, part.dst_id_field)
    _refuse_absent(edges, names, file)
    sources, targets = (id_values(edges.column(name), name, file) for name in names)
    others = [name for name in edges.column_names if name not in (*names, "graph_id")]
    if weight is not None and weight not in others:
        raise no_such_weights(weight, file, others)
    weights = None if weight is None else weight_column(edges, weight, file)
    others = [name for name in others if name != weight]
    note = f"{file.name}: {ignored_columns(others, weight is not None)}"
    lines = np.arange(_FIRST_LINE, _FIRST_LINE + edges.num_rows)
    return EdgeTable(file, sources, targets, lines, (note,) * bool(others), weights=weights)


def _refuse_absent(table: pyarrow.Table, names: Sequence[str], file: Path) -> None:
    absent = [name for name in names if name not in table.column_names]
    if absent:
        raise DatasetError(
            what=f"{file} has no column {', '.join(absent)}; it has {', '.join(table.column_names[:12])}",
            why=f"{META} says, or by default means, that ids stand there",
            fix=f"rename the column, or name it in {META}",
        )


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    files: Mapping[str, str] = {
        META: "dataset_name: ring\nedge_data:\n- file_name: edges.csv\nnode_data:\n- file_name: nodes.csv\n",
        "edges.csv": "src_id,dst_id\n10,11\n11,12\n12,13\n13,10\n",
        "nodes.csv": "node_id,label,train_mask,val_mask,test_mask,feat\n"
        '10,0,True,False,False,"1, 0"\n11,1,True,False,False,"0, 1"\n'
        '12,0,False,True,False,"1, 1"\n13,1,False,False,True,"2, 0"\n',
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder
