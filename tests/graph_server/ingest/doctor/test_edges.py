"""What the doctor counts and finds among edges."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graph_server.ingest.doctor.diagnosis import Diagnosis, Level
from graph_server.ingest.doctor.edges import degree_bins
from tests.graph_server.ingest.doctor.looks import codes, finding, look_at


def edges(*pairs: tuple[int, int]) -> dict[str, np.ndarray]:
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return {"sources": ends[:, 0], "targets": ends[:, 1]}


@given(st.lists(st.integers(0, 2**20), min_size=1))
def test_every_degree_is_in_one_bin(degrees: list[int]):
    bins = degree_bins(np.array(degrees))
    for one in bins:
        assert one.num_vertices == sum(one.lowest <= degree <= one.highest for degree in degrees)
    assert sum(one.num_vertices for one in bins) == len(degrees)
    assert [one.lowest for one in bins[1:]] == [one.highest + 1 for one in bins[:-1]]


def test_counts_of_a_directed_graph():
    about = look_at(**edges((0, 1), (0, 1), (1, 0), (1, 2), (2, 2)), options={"directed": True}).edges
    assert about is not None
    assert (about.raw, about.distinct, about.both_ways, about.trained_on, about.directed) == (5, 4, 7, 5, True)
    assert (about.self_loops, about.isolated, about.zero_in_degree) == (1, 1, 1)
    assert (about.components, about.largest_component, about.largest_in_degree) == (2, 3, 2)
    assert about.reciprocity == 2 / 3
    assert about.mean_in_degree == 5 / 4


def test_while_the_direction_is_refused_nothing_is_trained_on():
    diagnosis = look_at(**edges((0, 1), (1, 2)))
    about = diagnosis.edges
    assert about is not None
    assert (about.raw, about.both_ways, about.trained_on, about.directed) == (2, 4, None, None)
    assert diagnosis.num_edges == 2
    assert finding(diagnosis, "edges").options == ("dataset.directed: false", "dataset.directed: true")
    assert "reverse_edges_added" not in codes(diagnosis)


def test_duplicates_are_named_by_their_rows():
    twice = edges((0, 1), (1, 0), (0, 1), (0, 1))
    kept = finding(look_at(**twice, options={"directed": True}), "duplicate_edges")
    assert (kept.level, kept.rows_of, kept.rows) == (Level.WARNING, "edges", (2, 3))
    assert (kept.what, kept.options) == ("2 of 4 edges repeat another", ("dataset.dedup: true",))
    removed = finding(look_at(**twice, edges_are_a_set=True, options={"directed": True}), "duplicate_edges")
    assert (removed.level, removed.options) == (Level.NOTE, ("dataset.dedup: false",))


def test_vertices_that_hear_of_nobody():
    diagnosis = look_at(**edges((0, 1), (1, 2)), options={"directed": True})
    assert finding(diagnosis, "isolated").rows == (3,)
    assert (finding(diagnosis, "zero_in_degree").rows, finding(diagnosis, "zero_in_degree").options) == (
        (0,),
        ("dataset.directed: false",),
    )
    assert not {"isolated", "zero_in_degree", "components"} & codes(look_at())


def test_self_loops_parts_and_added_edges():
    diagnosis = look_at(**edges((0, 1), (2, 3), (3, 3)), options={"directed": False})
    assert finding(diagnosis, "self_loops").rows == (2,)
    assert finding(diagnosis, "components").what.startswith("2 parts without an edge between them")
    assert finding(diagnosis, "reverse_edges_added").what == "2 reverse edges are added to 3 edges"


def test_a_graph_without_edges():
    diagnosis: Diagnosis = look_at(**edges())
    assert diagnosis.accepted
    assert codes(diagnosis) >= {"no_edges"}
    assert diagnosis.edges is not None
    assert (diagnosis.edges.components, diagnosis.edges.in_degrees[0].num_vertices) == (4, 4)
