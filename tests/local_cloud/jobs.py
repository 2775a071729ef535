"""Small jobs for tests: the example graph and the bundled one, with as many intervals as a test needs."""

from pathlib import Path

from cli.spec_flags import flag_layer
from common.resolve_spec import ResolvedSpec
from local_cloud.load_job import load_job
from local_cloud.observer import EpochReport
from local_cloud.run_result import Status

ROOT = Path(__file__).resolve().parents[2]
MY_GRAPH = str(ROOT / "examples" / "my_graph")
INTERVALS = {"cut.num_intervals": "12", "cluster.num_graph_servers": "3"}


def load(target: str | None, settings: dict[str, str], base_folder: Path = ROOT) -> ResolvedSpec:
    return load_job(target, flag_layer(settings), base_folder)


def load_my_graph(**settings: str) -> ResolvedSpec:
    """12 intervals on 3 graph servers, 6 epochs; settings by full name with __ for the dot."""
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return load(MY_GRAPH, {"dataset.directed": "false", "training.num_epochs": "6", **INTERVALS, **given})


class Recorder:
    """An observer that remembers; `at_epoch_end` is called after each."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.notes: list[str] = []
        self.reports: list[EpochReport] = []
        self.starts: list[tuple[str, str, int]] = []
        self.statuses: list[Status] = []

    def doing(self, what: str) -> None:
        self.phases.append(what)

    def training_starts(self, job_id: str, run_dir: str, num_epochs: int) -> None:
        self.starts.append((job_id, run_dir, num_epochs))

    def epoch_ended(self, report: EpochReport) -> None:
        self.reports.append(report)
        self.at_epoch_end(report)

    def at_epoch_end(self, report: EpochReport) -> None:
        pass

    def status(self, status: Status) -> None:
        self.statuses.append(status)

    def note(self, text: str) -> None:
        self.notes.append(text)
