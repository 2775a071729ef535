"""Gather and ∇Gather (with their edge stage): sums over the edges of an interval's rows, on the graph server's cores.

A call covers a run of rows; a row is summed by one thread in the order of its edges, so no split changes a bit.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from common.errors import ScheduleError
from common.passes import Pass, PassKind
from common.saga.arrays import Array
from common.saga.gathers import AttentionSum
from common.saga.masks import ATTENTION_HEADS_PER_KEY, attention_key, scale, threshold
from common.saga.program import Step
from graph_server.graph.attention_kernels import Blocks, attention_backward, attention_forward
from graph_server.graph.edges import Edges
from graph_server.graph.sum_kernels import weighted_sum
from graph_server.stages.held import Held

Lags = Epochs = npt.NDArray[np.int64]
WORK_PER_CALL = 16_000_000
"""Edges times width: some milliseconds, after which other steps get their turn."""
SMALL_WORK, ATTENTION_TIMES = 200_000, 5
"""What takes about 0.05 ms; attention takes so many times as long as a sum."""


def is_small(held: Held, step: Step, rows: slice, width: int) -> bool:
    """Whether to gather an interval's rows takes no longer than a thread takes to wake."""
    indptr = held.edges(backward=step.backward).indptr
    work = (indptr[rows.stop] - indptr[rows.start] + rows.stop - rows.start) * width
    times = ATTENTION_TIMES if isinstance(held.layer(step).gather, AttentionSum) else 1
    return bool(work * times < SMALL_WORK)


def row_runs(edges: Edges, rows: slice, width: int) -> Iterator[tuple[int, int]]:
    """Split an interval's rows into runs of about WORK_PER_CALL; a row is never split."""
    work = (edges.indptr[rows.start : rows.stop + 1] + np.arange(rows.start, rows.stop + 1)) * width
    first = 0
    while first < rows.stop - rows.start:
        last = int(np.searchsorted(work, work[first] + WORK_PER_CALL, side="right")) - 1
        last = min(max(last, first + 1), rows.stop - rows.start)
        yield rows.start + first, rows.start + last
        first = last


def read_and_gather(
    held: Held, pass_: Pass, step: Step, rows: tuple[int, int], *, interval: int, oldest: int
) -> Lags | None:
    """`gather_rows`, while nobody changes the table: how many epochs old each interval's block was that it may have
    read. None: constant rows have no age. Raises ScheduleError if one was older than epoch `oldest`."""
    table = step.reads[0]
    if table in held.programs.constants:
        gather_rows(held, pass_, step, rows)
        return None
    with held.store.reading(pass_, table):
        epochs = held.store.epochs(pass_, table)
        read = epochs[held.feeds(interval, backward=step.backward)]
        if (read < oldest).any():
            raise ScheduleError(
                f"{step} of interval {interval} in {pass_} met rows of epoch {read.min()} in {table}",
                why=f"it may read rows of epoch {oldest} and later",
            )
        # where the forward pass may have met stale rows, fresh ones may have been made from such
        is_exact = oldest == pass_.epoch and (read == pass_.epoch).all()
        gather_rows(held, pass_, step, rows, None if is_exact else epochs)
    return pass_.epoch - read


def gather_rows(held: Held, pass_: Pass, step: Step, rows: tuple[int, int], epochs: Epochs | None = None) -> None:
    """Fill rows[0]..rows[1] of what the step writes. epochs: of each interval's rows; None: all are of the pass's, and
    made from such."""
    layer = held.layer(step)
    edges = held.edges(backward=step.backward)
    if isinstance(layer.gather, AttentionSum):
        _attend(held, pass_, step, rows, epochs)
        return
    factors = held.factors[step.layer]
    post = factors.pre if step.backward else factors.post
    weighted_sum(
        edges.indptr,
        edges.columns,
        held.add_loop[step.layer],
        held.store.array(pass_, step.reads[0]),
        post[:, 0],
        held.store.array(pass_, step.writes[0]),
        rows,
        held.weights[step.backward],
    )


def _attend(held: Held, pass_: Pass, step: Step, rows: tuple[int, int], epochs: Epochs | None) -> None:
    layer, n, edges, array = held.layer(step), step.layer, held.edges(backward=step.backward), held.store.array
    gather = layer.gather
    assert isinstance(gather, AttentionSum)
    assert layer.edge is not None
    real = held.store.dtype.type
    graph = (edges.indptr, edges.columns, held.add_loop[n], array(pass_, step.reads[0]), edges.table_ids)
    shape, slope = (gather.heads, gather.head_width), real(layer.edge.slope)
    dropout = attention_dropout(held, pass_, step, epochs if step.backward else None, rows[0])
    source, saved = array(pass_, f"projected{n}"), array(pass_, f"saved{n}")
    if step.backward:
        attention_backward(*graph, source, saved, shape, slope, dropout, array(pass_, f"grad_source{n}"), rows)
    else:
        t = source[:, gather.width + gather.heads :]
        attention_forward(*graph, t, shape, slope, dropout, array(pass_, f"gathered{n}"), saved, rows)


def attention_dropout(
    held: Held, pass_: Pass, step: Step, epochs: Epochs | None, row: int
) -> tuple[Array | Blocks, int, np.floating]:
    """(keys of each eight heads, or Blocks; threshold of a byte, 0 outside training; scale of what is kept)."""
    gather = held.layer(step).gather
    assert isinstance(gather, AttentionSum)
    limit, real = threshold(gather.dropout) if pass_.kind is PassKind.TRAIN else 0, held.store.dtype.type
    distinct, place = np.unique([pass_.epoch] if epochs is None else epochs, return_inverse=True)
    first_heads = range(0, gather.heads, ATTENTION_HEADS_PER_KEY)
    keys = np.array(
        [[attention_key(held.seed, e, step.layer, h) for e in distinct.tolist()] for h in first_heads], np.uint64
    )
    if epochs is None:
        return keys[:, 0], limit, real(scale(gather.dropout))
    is_own = np.arange(len(epochs)) == held.interval_of_row[row]
    blocks = Blocks(keys.take(place, axis=1), is_own.astype(real), held.interval_of_row)
    return blocks, limit, real(scale(gather.dropout))
