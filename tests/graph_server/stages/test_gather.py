"""What is small enough to be gathered at once, and how reads are counted."""

from pathlib import Path

import numpy as np
import pytest

from common.saga.program import Kind
from graph_server.graph.partition import Partition, deal_folder
from graph_server.stages import gather
from graph_server.stages.gather import is_small
from graph_server.stages.held import Held
from graph_server.stages.read_ages import ReadAges
from tests.small_jobs import small_dataset, small_job


def held_of(model: str, folder: Path) -> Held:
    job = small_job(small_dataset(60, num_edges=200), folder, {"model.name": model})
    return Held(job.programs, Partition.load(job.folder, deal_folder(job.folder, 1), 0), seed=0)


@pytest.mark.parametrize(("model", "times"), [("gcn", 1), ("gat", gather.ATTENTION_TIMES)])
def test_attention_is_small_for_fewer_edges(model: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    held = held_of(model, tmp_path)
    step = next(step for step in held.programs.train.steps if step.kind is Kind.GATHER)
    rows, indptr = held.partition.rows[0], held.edges(backward=False).indptr
    work = int(indptr[rows.stop] - indptr[rows.start] + rows.stop - rows.start) * 7 * times
    monkeypatch.setattr(gather, "SMALL_WORK", work + 1)
    assert is_small(held, step, rows, 7)
    monkeypatch.setattr(gather, "SMALL_WORK", work)
    assert not is_small(held, step, rows, 7)


@pytest.mark.parametrize(
    ("reads", "counts"),
    [
        ([[0, 0, 0]], {"reads_exact": 3}),
        ([[1, 1], [0]], {"stale_0": 2, "reads_exact": 1}),
        ([[0, 1, 2, -1, 2], [2]], {"reads_exact": 1, "stale_0": 1, "stale_1": 3, "reads_ahead": 1}),
        ([[], None], {}),
    ],
)
def test_reads_are_counted_by_age(reads: list[list[int] | None], counts: dict[str, int]):
    ages = ReadAges()
    for lags in reads:
        ages.add(None if lags is None else np.array(lags, np.int64))
    assert ages.counts == counts
