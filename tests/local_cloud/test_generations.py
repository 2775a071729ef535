"""Who is lost and who is to blame: the rules by which a job starts again, without a job."""

import pytest

from common.errors import (
    CheckpointError,
    ClusterError,
    DeadlineExceeded,
    PeerClosed,
    PeerLost,
    RequestRefused,
    ScheduleError,
    SpecError,
    TaskCrashed,
)
from local_cloud.generations import Generations


def killed(role: str) -> PeerLost:
    return PeerLost(f"{role} was killed by signal 9")


def generations(max_restarts: int = 3, num_graph_servers: int = 3, first: int = 1) -> Generations:
    return Generations(max_restarts=max_restarts, num_graph_servers=num_graph_servers, first=first)


@pytest.mark.parametrize("error", [killed("graph1"), PeerClosed("parameter0 is gone"), DeadlineExceeded("no answer")])
def test_a_loss_makes_the_next_generation(error: Exception):
    job = generations()
    loss = job.lost(error, 12)
    assert str(loss) == f"generation 1, after epoch 12: {error.args[0]}"
    assert (job.generation, job.restarts, job.num_graph_servers) == (2, 1, 3)


@pytest.mark.parametrize(
    "error",
    [
        TaskCrashed("interval 7 raised"),
        RequestRefused("not finite"),
        SpecError("lr = fast"),
        CheckpointError("the disk is full"),
        ScheduleError("illegal"),
        ClusterError("graph0 failed with KeyError"),
        KeyboardInterrupt(),
        OSError(28, "No space left on device"),
    ],
)
def test_what_would_come_again_ends_the_job(error: BaseException):
    job = generations()
    with pytest.raises(type(error)) as raised:
        job.lost(error, 12)
    assert raised.value is error
    assert job.restarts == 0


def test_one_loss_too_many_tells_the_whole_story():
    job = generations(max_restarts=2)
    job.lost(killed("graph1"), 3)
    job.lost(killed("parameter0"), 0)
    with pytest.raises(PeerLost) as ended:
        job.lost(killed("graph2"), 8)
    assert str(ended.value) == (
        "graph2 was killed by signal 9; the job was started 3 times\n"
        "  why: generation 1, after epoch 3: graph1 was killed by signal 9; "
        "generation 2, after epoch 0: parameter0 was killed by signal 9; "
        "generation 3, after epoch 8: graph2 was killed by signal 9\n"
        "  fix: find out what ends these processes (memory?), then resume the run, or raise cluster.max_restarts"
    )


def test_without_restarts_the_error_is_as_it_was():
    error = killed("graph1")
    with pytest.raises(PeerLost) as raised:
        generations(max_restarts=0).lost(error, 3)
    assert raised.value is error


def test_a_resumed_run_counts_its_own_restarts():
    job = generations(max_restarts=1, first=5)
    job.lost(killed("graph1"), 3)
    assert (job.generation, job.restarts) == (6, 1)
    with pytest.raises(PeerLost):
        job.lost(killed("graph1"), 3)


@pytest.mark.parametrize(
    ("lost", "left"),
    [
        (["graph1", "graph1"], 2),
        (["graph1", "graph2"], 3),
        (["graph1", "parameter0", "graph1"], 3),
        (["parameter0", "parameter0"], 3),
        (["graph1", "graph1", "graph1"], 2),
        (["graph1", "graph1", "graph1", "graph1"], 1),
        (["graph0"] * 9, 1),
        (["graph1", "graph11"], 3),
    ],
)
def test_the_same_graph_server_twice_in_a_row_is_left_out(lost: list[str], left: int):
    job = generations(max_restarts=100)
    for role in lost:
        job.lost(killed(role), 1)
    assert job.num_graph_servers == left
