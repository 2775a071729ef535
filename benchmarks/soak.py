"""Trainings one after another under bad luck: does any of them lose anything?

    python benchmarks/soak.py [--minutes N] [--quick] [--json FILE]

Each job is Cora on three graph servers, two parameter servers and the local Lambda service, with one of four models,
in pipe or sync, over ipc or CURVE. Roles are killed with SIGKILL at random epochs, a tenth of the leases is killed, a
tenth refused, messages are late, lost and doubled. The job goes on from its checkpoints, and its end is compared with
that of the same job in this process, undisturbed.

Goals: every run ends with the same bytes of weights and predictions; no process is left. 30 minutes; --quick: two runs.
"""

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import count

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from benchmarks.modes import prepared
from common.epoch_metrics import EpochMetrics
from common.role_start import Weather
from common.weights_hash import weights_sha256
from common.wire.channel import Faults as WireFaults
from local_cloud.cluster import ClusterOptions
from local_cloud.in_process import run_in_process
from local_cloud.lambda_service.settings import Faults
from local_cloud.prepare import PreparedJob
from local_cloud.restarts import run_job
from local_cloud.run_folder import new_job_id
from local_cloud.run_result import RunResult, Watch

NUM_EPOCHS = 12
ROLES = ("graph0", "graph1", "graph2", "parameter0", "parameter1")
MOST_KILLS = 4
GONE_SECONDS = 20.0
"""How long processes may take to go."""
SETTINGS = {
    "training.num_epochs": str(NUM_EPOCHS),
    "cut.num_intervals": "6",
    "cluster.num_graph_servers": "3",
    "cluster.num_parameter_servers": "2",
    "cluster.max_restarts": str(2 * MOST_KILLS),
    "backend.name": "lambda",
    "backend.lease_max_tasks": "16",
    "output.save_model_frequency": "2",
}


@dataclass(frozen=True)
class Row:
    """One run. `left`: processes that were there after its end."""

    model: str
    mode: str
    wire: str
    kills: int
    restarts: int
    lost_leases: int
    throttled: int
    relaunches: int
    is_equal: bool
    left: int
    seconds: float


@dataclass
class Luck:
    """Kills roles as epochs end. `losses`: (epoch, role) in their order, no role twice."""

    losses: list[tuple[int, str]]
    restarts: int = 0
    _own: set[int] = field(default_factory=lambda: {child.pid for child in psutil.Process().children(recursive=True)})

    def epoch_ended(self, ended: EpochMetrics) -> None:
        if self.losses and self.losses[0][0] <= ended.epoch:
            for process in self.alive(self.losses.pop(0)[1]):
                process.send_signal(signal.SIGKILL)

    def rewound(self, _: int) -> None:
        self.restarts += 1

    def alive(self, role: str = "") -> list[psutil.Process]:
        """Of this job, by the name of its log."""
        family = [child for child in psutil.Process().children(recursive=True) if child.pid not in self._own]
        return [child for child in family if not role or _log_of(child) == role]

    def left(self) -> int:
        deadline = time.monotonic() + GONE_SECONDS
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        return len(self.alive())


def _log_of(process: psutil.Process) -> str:
    try:
        return os.path.splitext(os.path.basename(os.readlink(f"/proc/{process.pid}/fd/2")))[0]
    except OSError:
        return ""


def jobs(seed: int) -> Iterator[tuple[dict[str, str], bool, random.Random]]:
    """Settings, whether over CURVE, and the die of its bad luck; without end."""
    for number in count(seed):
        die = random.Random(number)
        model, mode = die.choice(("gcn", "graphsage", "gin", "gat")), die.choice(("pipe", "pipe", "sync"))
        yield (
            {**SETTINGS, "model.name": model, "training.mode": mode, "training.seed": str(number)},
            number % 2 > 0,
            die,
        )


def run(settings: dict[str, str], *, secure: bool, die: random.Random) -> Row:
    began = time.monotonic()
    job, undisturbed = prepared("cora", settings), prepared("cora", {**settings, "backend.name": "auto"})
    kills = die.randint(1, MOST_KILLS)
    luck = Luck(sorted((die.randint(2, NUM_EPOCHS - 2), role) for role in die.sample(ROLES, kills)))
    with tempfile.TemporaryDirectory() as folder:
        options = ClusterOptions(
            secure=secure,
            concurrency=6,
            faults=Faults(crash_probability=0.1, throttle_probability=0.1, seed=die.randrange(2**31)),
            weather=Weather(WireFaults(max_delay=0.002, loss=0.001, duplication=0.05, seed=die.randrange(2**31))),
            checkpoints=folder,
        )
        ended = run_job(job, new_job_id("soak"), Watch(on_epoch=luck.epoch_ended, rewound=luck.rewound), options)
    counts = ended.totals.counts
    return Row(
        model=settings["model.name"],
        mode=settings["training.mode"],
        wire="CURVE" if secure else "ipc",
        kills=kills,
        restarts=luck.restarts,
        lost_leases=counts.get("lost_leases", 0),
        throttled=counts.get("throttled", 0),
        relaunches=counts.get("relaunches", 0),
        is_equal=bits(ended) == bits(_alone(undisturbed)),
        left=luck.left(),
        seconds=time.monotonic() - began,
    )


def _alone(job: PreparedJob) -> RunResult:
    return run_in_process(job, Watch())


def bits(result: RunResult) -> tuple[str, str, bytes]:
    assert result.best is not None
    assert result.logits is not None
    return weights_sha256(result.last), weights_sha256(result.best), result.logits.tobytes()


def soak(go_on: Callable[[list[Row]], bool], seed: int) -> list[Row]:
    rows: list[Row] = []
    for settings, secure, die in jobs(seed):
        if not go_on(rows):
            break
        rows.append(run(settings, secure=secure, die=die))
        show(rows[-1:])
    return rows


def show(rows: list[Row]) -> None:
    table = Table(*asdict(rows[0]), title="soak" if len(rows) > 1 else None, show_header=len(rows) > 1)
    for row in rows:
        table.add_row(*(f"{value:.1f}" if isinstance(value, float) else str(value) for value in asdict(row).values()))
    Console(width=120).print(table)


def main() -> None:
    parser = arguments("Trainings under bad luck.")
    parser.add_argument("--minutes", type=float, default=30.0, metavar="N", help="no run begins after so many (30)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first run")
    given = parser.parse_args()
    deadline = time.monotonic() + 60 * given.minutes
    rows = soak(lambda done: len(done) < 2 if given.quick else time.monotonic() < deadline, given.seed)
    show(rows)
    equal, left = sum(row.is_equal for row in rows) / len(rows), sum(row.left for row in rows)
    kills = sum(row.kills for row in rows)
    Console().print(f"{len(rows)} runs, {kills} roles killed, {sum(row.lost_leases for row in rows)} leases lost")
    goals = {"runs that end bit-equal": Goal(equal, 1.0), "processes left": Goal(left, 0, at_most=True)}
    write(given.json, goals, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
