"""How far intervals ran apart, out of what the graph servers counted: the part of a summary that async is about."""

from collections.abc import Mapping

import msgspec

STALE = "stale_"


class Asynchrony(msgspec.Struct, frozen=True, kw_only=True):
    """Reads are interval blocks as kernel calls met them, of train passes and evaluations. Seconds are summed over
    intervals (gates) and over threads (tables)."""

    reads_exact: int
    """Rows of the reader's own epoch."""
    stale_reads: dict[int, int]
    """Staleness -> reads: 0 is the last epoch's rows, k those of k epochs before it."""
    reads_ahead: int
    """Rows of a later epoch than the reader's."""
    epoch_gate_seconds: float
    """Waited for the next epoch to be opened, evaluations included."""
    read_gate_seconds: float
    """Waited for rows."""
    order_gate_seconds: float
    """Waited for other intervals to end their epoch before, so that a parameter server holds back no more gradients."""
    table_seconds: float
    """Waited for others to read or publish a table's rows."""
    stash_bytes: int
    """Of older weights versions, at their most, over all parameter servers."""
    held_back_bytes: int
    """The same, of gradients that waited for those of other intervals."""

    @property
    def max_staleness(self) -> int:
        return max((staleness for staleness, reads in self.stale_reads.items() if reads), default=0)


def asynchrony(counts: Mapping[str, int]) -> Asynchrony:
    """`counts` of all roles, added up."""
    stale = {int(name.removeprefix(STALE)): reads for name, reads in counts.items() if name.startswith(STALE)}
    return Asynchrony(
        reads_exact=counts.get("reads_exact", 0),
        stale_reads=dict(sorted(stale.items())),
        reads_ahead=counts.get("reads_ahead", 0),
        epoch_gate_seconds=counts.get("epoch_gate_wait_ms", 0) / 1000,
        read_gate_seconds=counts.get("read_gate_wait_ms", 0) / 1000,
        order_gate_seconds=counts.get("order_gate_wait_ms", 0) / 1000,
        table_seconds=counts.get("table_wait_ms", 0) / 1000,
        stash_bytes=counts.get("stash_bytes", 0),
        held_back_bytes=counts.get("held_back_bytes", 0),
    )
