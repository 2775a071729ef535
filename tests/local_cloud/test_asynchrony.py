"""What the summary says of asynchrony, out of counts."""

from local_cloud.asynchrony import asynchrony


def test_counts_become_a_histogram():
    counts = {"reads_exact": 5, "stale_2": 1, "stale_0": 7, "reads_ahead": 3, "read_gate_wait_ms": 1500, "tasks": 9}
    told = asynchrony(counts)
    assert told.stale_reads == {0: 7, 2: 1}
    assert (told.reads_exact, told.reads_ahead, told.max_staleness) == (5, 3, 2)
    assert (told.read_gate_seconds, told.epoch_gate_seconds) == (1.5, 0.0)


def test_without_stale_reads_nothing_is_stale():
    assert asynchrony({}).max_staleness == 0
