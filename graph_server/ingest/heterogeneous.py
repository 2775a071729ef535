"""Files with several kinds of vertices or edges: one job trains on one kind, and the user says which.

A relation is (kind of source, name, kind of target). It can be picked when it joins vertices of one kind.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from common.errors import DatasetError


class Relation(NamedTuple):
    source: str
    name: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}:{self.name}:{self.target}"


def pick_relation(relations: Sequence[Relation], edge_type: str | None, node_type: str | None, path: Path) -> Relation:
    """The one relation that `dataset.edge_type` and `dataset.node_type` leave.

    edge_type   a relation's name, or `source:name:target`
    """
    fitting = [relation for relation in relations if relation.source == relation.target]
    left = [
        relation
        for relation in fitting
        if edge_type in (None, relation.name, str(relation)) and node_type in (None, relation.source)
    ]
    if len(left) == 1:
        return left[0]
    shown = ", ".join(str(relation) for relation in relations)
    asked = ", ".join(f"{key}: {value}" for key, value in (("edge_type", edge_type), ("node_type", node_type)) if value)
    if not fitting:
        fix = "project it to one kind of vertices, for example by joining two steps author-paper-author into one edge"
    else:
        fix = f"set dataset.edge_type: {' or '.join(str(relation) for relation in fitting)}"
    raise DatasetError(
        what=f"{path} holds {len(relations)} kinds of edges: {shown}" + (f"; asked for {asked}" if asked else ""),
        why=f"a model here has one kind of vertices, and {len(left)} kinds of edges would do",
        fix=fix,
    )


def pick_kind(key: str, kinds: Sequence[str], wanted: str | None, path: Path) -> str:
    """The one kind of vertices, or of edges without known ends, that `dataset.<key>` leaves."""
    left = [kind for kind in kinds if wanted in (None, kind)]
    if len(left) == 1:
        return left[0]
    raise DatasetError(
        what=f"{path} holds {len(kinds)} kinds: {', '.join(kinds[:10])}" + (f"; asked for {wanted}" if wanted else ""),
        why="a model here has one kind of vertices and one kind of edges",
        fix=f"set dataset.{key}: {' or '.join(kinds[:10])}",
    )
