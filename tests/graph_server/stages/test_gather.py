"""What is small enough to be gathered at once, and how reads are counted."""

from pathlib import Path

import numpy as np
import pytest

from common.passes import train
from common.saga.arrays import Array
from common.saga.program import Kind, Step
from graph_server.graph.partition import Partition, deal_folder
from graph_server.stages import gather
from graph_server.stages.gather import gather_rows, is_small, read_and_gather
from graph_server.stages.held import Held
from graph_server.stages.read_ages import ReadAges
from tests.small_jobs import small_dataset, small_job


def held_of(model: str, folder: Path, num_graph_servers: int = 1) -> Held:
    settings = {"model.name": model, "model.attention_dropout": 0.5 if model == "gat" else 0.0}
    job = small_job(small_dataset(60, num_edges=200), folder, settings)
    partition = Partition.load(job.folder, deal_folder(job.folder, num_graph_servers), 0)
    return Held(job.programs, partition, seed=0, dtype=np.float64)


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


# ---- rows of several epochs


def publish(held: Held, step: Step, epochs: list[int]) -> None:
    """Made-up rows of each interval, of its epoch, own and ghosts; and made-up own rows of everything else."""
    random, store = np.random.default_rng(0), held.store
    for name in ("projected1", "saved1"):
        store.array(train(1), name)[...] = random.normal(size=store.array(train(1), name).shape)
    width = store.array(train(1), step.reads[0]).shape[1]
    for interval, epoch in enumerate(epochs):
        if interval in held.partition.rows:
            rows = held.partition.rows[interval]
            store.publish(train(epoch), step.reads[0], interval, random.normal(size=(rows.stop - rows.start, width)))
        else:
            place = store.ghost_block(step.reads[0], interval) or slice(0, 0)
            block = random.normal(size=(place.stop - place.start, width))
            store.accept_ghosts(train(epoch), step.reads[0], interval, block)


def gathered(held: Held, step: Step, epoch: int, only: int | None = None) -> Array:
    """[rows, width] of interval 0 by ∇Gather of this epoch; `only`: of that one, others' rows without gradient."""
    pass_, rows = train(epoch), held.partition.rows[0]
    table, run = held.store.array(pass_, step.reads[0]), (rows.start, rows.stop)
    if only is None:
        read_and_gather(held, pass_, step, run, interval=0, oldest=0)
    else:
        kept = table.copy()
        table[held.store.epochs(pass_, step.reads[0])[held.interval_of_row] != only, :-2] = 0
        gather_rows(held, train(only), step, run)
        table[...] = kept
    return held.store.rows(pass_, step.writes[0], 0).copy()


@pytest.mark.parametrize("num_graph_servers", [1, 2])
def test_attention_of_rows_of_several_epochs(num_graph_servers: int, tmp_path: Path):
    """Each epoch's rows weigh by the masks of that epoch; scores have a gradient of the own interval's rows alone."""
    held = held_of("gat", tmp_path, num_graph_servers)
    step = next(s for s in held.programs.train.steps if s.kind is Kind.GATHER and s.backward and s.layer == 1)
    epochs = [5, *(4 + interval % 3 for interval in range(1, held.partition.book.num_intervals))]
    assert set(epochs) == {4, 5, 6}
    publish(held, step, epochs)
    width = held.layer(step).gather.width
    mixed, parts = gathered(held, step, 5), {epoch: gathered(held, step, 5, epoch) for epoch in (4, 5, 6)}
    z, scores = slice(width), slice(width, width + 2)
    assert np.allclose(mixed[:, z], sum(part[:, z] for part in parts.values()))
    publish(held, step, [5] * len(epochs))
    assert not np.allclose(mixed[:, z], gathered(held, step, 5)[:, z])
    publish(held, step, [5, *([7] * (len(epochs) - 1))])
    assert np.allclose(mixed[:, scores], gathered(held, step, 5, only=5)[:, scores])
