"""Every id once, sorted: the same whether they are marked or sorted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_server.ingest import ids
from graph_server.ingest.ids import distinct_ids
from tests.examples import examples

NUMBERS = st.one_of(st.integers(-5, 40), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(st.lists(NUMBERS, max_size=12), min_size=1, max_size=4))
@settings(max_examples=examples(100))
def test_as_sorted(parts: list[list[int]]):
    found = distinct_ids([np.array(part, np.int64) for part in parts])
    assert found.tolist() == sorted({number for part in parts for number in part})
    assert found.dtype == np.int64


def test_texts():
    assert distinct_ids([np.array(["b", "a"]), np.array(["ccc", "a"])]).tolist() == ["a", "b", "ccc"]


@pytest.mark.parametrize("shift", [0, 1, -2, 700])
def test_numbers_close_together_are_not_sorted(monkeypatch: pytest.MonkeyPatch, shift: int):
    monkeypatch.setattr(ids.np, "unique", None)
    assert distinct_ids([np.arange(500)[::-1] + shift, np.arange(3) + shift]).tolist() == list(
        range(shift, 500 + shift)
    )
