"""A table with one row per vertex, as Parquet, CSV and others hold it: which column is what is told by its name.

id          id, node_id, nodeId, vertex, ...; without one, rows count from 0
label       label, y, class, target, subject
features    a column of lists; else every column of numbers that is nothing else, in order
split       split, with train / valid / test in it; or train_mask, val_mask, test_mask
kind        labels, node_type, ntype: of several kinds of vertices one is picked
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute

from common.errors import DatasetError
from graph_server.ingest.arrow_columns import (
    SPLITTABLE,
    decoded,
    id_values,
    is_list,
    is_number,
    is_text,
    matrix_values,
    number_values,
    plain_name,
    text_values,
)
from graph_server.ingest.heterogeneous import pick_kind
from graph_server.ingest.ids import ID_HEADERS
from graph_server.ingest.label_tables import SPLIT_WORDS
from graph_server.ingest.masks import as_mask
from graph_server.ingest.raw_graph import MASK_NAMES, Array, first_few

IDS = frozenset(plain_name(name) for name in ID_HEADERS)
LABELS = ("label", "y", "class", "target", "subject", "labels")
SPLITS = ("split", "mask", "set")
KINDS = ("labels", "nodelabels", "nodetype", "ntype")
MASKS = {"train": ("trainmask",), "valid": ("valmask", "validmask"), "test": ("testmask",)}


@dataclass(frozen=True)
class NodeTable:
    """ids [N] or None when rows count from 0; features [N, F]; labels [N] or [N, k]; masks bool [N]."""

    num_nodes: int
    ids: Array | None
    features: Array | None
    labels: Array | None
    masks: dict[str, Array] | None
    lines: Array
    """[N] the row, or line, that each vertex stands on."""
    kind: str | None
    notes: tuple[str, ...]


def read_node_table(table: pyarrow.Table, path: Path, *, node_type: str | None, first_line: int = 0) -> NodeTable:
    """Raises DatasetError naming the column, and the row where there is one.

    first_line   the number of the first row, for errors
    """
    columns = {name: decoded(table.column(name)) for name in dict.fromkeys(table.column_names)}
    roles = _roles(columns)
    lines = np.arange(first_line, first_line + table.num_rows)
    kind = None
    if "kind" in roles:
        columns, lines, kind = _of_kind(columns, roles["kind"], lines, node_type, path)
    features, used = _features(columns, roles, path, lines)
    others = [name for name in columns if name not in used and name not in roles.values()]
    notes = [f"{path.name}: columns not used: {', '.join(others[:20])}"] if others else []
    if "list" not in roles and used:
        notes.append(f"{path.name}: features are the columns {', '.join(used[:20])}{', ...' if len(used) > 20 else ''}")
    return NodeTable(
        num_nodes=len(lines),
        ids=id_values(columns[roles["id"]], roles["id"], path) if "id" in roles else None,
        features=features,
        labels=_labels(columns[roles["label"]], roles["label"], path, lines) if "label" in roles else None,
        masks=_masks(columns, roles, path),
        lines=lines,
        kind=kind,
        notes=tuple(notes),
    )


def _roles(columns: Mapping[str, pyarrow.ChunkedArray]) -> dict[str, str]:
    """What is what: role -> column."""
    by_name: dict[str, str] = {}
    for name in columns:
        by_name.setdefault(plain_name(name), name)
    roles = {}
    if found := [name for plain, name in by_name.items() if plain in IDS]:
        roles["id"] = found[0]
    labels = [by_name[name] for name in LABELS if name in by_name]
    kinds = [by_name[name] for name in KINDS if name in by_name and is_text(columns[by_name[name]])]
    if kinds and (len(labels) > 1 or plain_name(kinds[0]) != "labels"):
        roles["kind"] = kinds[0]
    if labels and labels[0] != roles.get("kind"):
        roles["label"] = labels[0]
    splits = [by_name[name] for name in SPLITS if name in by_name and is_text(columns[by_name[name]])]
    if splits:
        roles["split"] = splits[0]
    for mask, names in MASKS.items():
        if found := [by_name[name] for name in names if name in by_name]:
            roles[mask] = found[0]
    lists = [name for name in columns if name not in roles.values() and _holds_lists(name, columns[name])]
    named = [name for name in lists if plain_name(name) in SPLITTABLE]
    if named or len(lists) == 1:
        roles["list"] = (named or lists)[0]
    return roles


def _holds_lists(name: str, column: pyarrow.ChunkedArray) -> bool:
    return is_list(column) or (is_text(column) and plain_name(name) in SPLITTABLE)


def _of_kind(
    columns: Mapping[str, pyarrow.ChunkedArray], name: str, lines: Array, wanted: str | None, path: Path
) -> tuple[dict[str, pyarrow.ChunkedArray], Array, str]:
    kinds = sorted(str(kind) for kind in columns[name].unique().to_pylist())
    kind = pick_kind("node_type", kinds, wanted, path)
    if len(kinds) == 1:
        return dict(columns), lines, kind
    chosen = pyarrow.compute.fill_null(pyarrow.compute.equal(columns[name], kind), False)
    return {column: values.filter(chosen) for column, values in columns.items()}, lines[chosen.to_numpy()], kind


def _features(
    columns: Mapping[str, pyarrow.ChunkedArray], roles: Mapping[str, str], path: Path, lines: Array
) -> tuple[Array | None, list[str]]:
    if "list" in roles:
        return matrix_values(columns[roles["list"]], roles["list"], path, lines), [roles["list"]]
    used = [name for name, column in columns.items() if name not in roles.values() and is_number(column)]
    if not used:
        return None, []
    return np.column_stack([number_values(columns[name]) for name in used]), used


def _labels(column: pyarrow.ChunkedArray, name: str, path: Path, lines: Array) -> Array:
    if is_text(column):
        return text_values(column, f"{path}: {name}")
    if is_list(column):
        return matrix_values(column, name, path, lines)
    if is_number(column):
        return number_values(column)
    raise DatasetError(f"{path}: {name} has type {column.type}", "a label is a number or a text", "convert the column")


def _masks(
    columns: Mapping[str, pyarrow.ChunkedArray], roles: Mapping[str, str], path: Path
) -> dict[str, Array] | None:
    given = [mask for mask in MASK_NAMES if mask in roles]
    if "split" in roles:
        if given:
            raise DatasetError(
                what=f"{path} has the column {roles['split']} and {', '.join(roles[mask] for mask in given)}",
                why="both say which vertices train, and they may differ",
                fix="keep one of them",
            )
        return _split(text_values(columns[roles["split"]], f"{path}: {roles['split']}"), path)
    if not given:
        return None
    num_rows = len(columns[roles[given[0]]])
    absent = np.zeros(num_rows, dtype=bool)
    return {
        mask: as_mask(number_values(columns[roles[mask]]), num_rows, 0, where=f"{path}: {roles[mask]}")
        if mask in roles
        else absent
        for mask in MASK_NAMES
    }


def _split(words: Array, path: Path) -> dict[str, Array]:
    plain = np.char.lower(np.char.strip(words))
    known = np.isin(plain, ["", *SPLIT_WORDS])
    if not known.all():
        raise DatasetError(
            what=f"{path}: row {int(np.flatnonzero(~known)[0])}: {first_few(np.unique(words[~known]))} is no split",
            why=f"known are {', '.join(SPLIT_WORDS)}, and an empty cell for none",
            fix="correct the column",
        )
    return {mask: np.isin(plain, [word for word, name in SPLIT_WORDS.items() if name == mask]) for mask in MASK_NAMES}
