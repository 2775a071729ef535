"""Picking one kind of edges between vertices of one kind."""

from pathlib import Path

import pytest

from common.errors import DatasetError
from graph_server.ingest.heterogeneous import Relation, pick_kind, pick_relation

CITES, WRITES = Relation("paper", "cites", "paper"), Relation("author", "writes", "paper")
KNOWS, CITES_AGAIN = Relation("author", "knows", "author"), Relation("author", "cites", "author")
HERE = Path("papers")


@pytest.mark.parametrize(
    ("relations", "edge_type", "node_type", "picked"),
    [
        ([CITES], None, None, CITES),
        ([CITES, WRITES], None, None, CITES),
        ([CITES, WRITES, KNOWS], None, "author", KNOWS),
        ([CITES, WRITES, KNOWS], "cites", None, CITES),
        ([CITES, CITES_AGAIN], "cites", "author", CITES_AGAIN),
        ([CITES, CITES_AGAIN], "paper:cites:paper", None, CITES),
    ],
)
def test_what_is_left_is_picked(relations, edge_type, node_type, picked):
    assert pick_relation(relations, edge_type, node_type, HERE) == picked


@pytest.mark.parametrize(
    ("relations", "edge_type", "left", "fix"),
    [
        ([CITES, KNOWS], None, 2, "set dataset.edge_type: paper:cites:paper or author:knows:author"),
        ([CITES, KNOWS], "likes", 0, "set dataset.edge_type: paper:cites:paper or author:knows:author"),
        ([WRITES], None, 0, "project it to one kind of vertices"),
    ],
)
def test_none_or_several_are_refused_with_the_list(relations, edge_type, left, fix):
    with pytest.raises(DatasetError, match=f"papers holds {len(relations)} kinds of edges: ") as error:
        pick_relation(relations, edge_type, None, HERE)
    assert f"{left} kinds of edges would do" in error.value.why
    assert error.value.fix.startswith(fix)


def test_kinds_without_known_ends():
    assert pick_kind("edge_type", ["CITES"], None, HERE) == "CITES"
    assert pick_kind("edge_type", ["CITES", "LIKES"], "LIKES", HERE) == "LIKES"
    with pytest.raises(DatasetError, match="holds 2 kinds: CITES, LIKES; asked for KNOWS") as error:
        pick_kind("edge_type", ["CITES", "LIKES"], "KNOWS", HERE)
    assert error.value.fix == "set dataset.edge_type: CITES or LIKES"
