"""A header that was not recognised as one: its words would be vertices, and all ids texts because of it."""

from collections.abc import Iterable, Iterator

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.edge_text import EdgeTable, lines_of_head
from graph_server.ingest.node_index import NodeIndex
from graph_server.ingest.raw_graph import Array
from graph_server.ingest.text import read_head


def refuse_lone_header(tables: Iterable[EdgeTable], index: NodeIndex) -> tuple[str, ...]:
    """A note where ids are texts.

    tables   of edges, in order; index: the vertices that they name, and nothing else lists

    Raises DatasetError if the first line is the only one with an id that is no whole number.
    """
    if not index.is_text:
        return ()
    words = index.node_ids[~_are_whole(index.node_ids)]
    remaining = iter(tables)
    first = next(remaining)
    if len(words) <= 2 and len(words) and first.unit == "line":
        _refuse(first, remaining, words)
    example = f", such as {words[0]}" if len(words) else ""
    return (f"ids are texts, because {len(words)} of them are no whole numbers{example}",)


def _refuse(first: EdgeTable, others: Iterator[EdgeTable], words: Array) -> None:
    top = next(lines_of_head(read_head(first.path), first.path), None)
    if top is None or top.number != first.lines[0] or not np.isin(words, [first.sources[0], first.targets[0]]).all():
        return
    ends = (first.sources[1:], first.targets[1:], *(end for table in others for end in (table.sources, table.targets)))
    if any(np.isin(end, words).any() for end in ends):
        return
    raise DatasetError(
        what=f"{first.path}:{top.number}: {top.text!r} is the only line with an id that is no whole number",
        why="it looks like a header; as an edge it would make its words vertices, and texts of all ids",
        fix="name the columns source and target, or start the line with #; if it is an edge, write source,target above",
    )


def _are_whole(ids: Array) -> Array:
    return np.char.isdecimal(np.char.lstrip(ids, "+-"))
