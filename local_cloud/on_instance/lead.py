"""Parameter server 0's instance: besides its role it is the launcher. It follows the job and tells of it.

    graph folder -> what earlier generations left -> newest checkpoint -> team -> epochs -> results -> the state machine

How a generation ends, and what the state machine hears
    the job is done               success, Completed
    asked to stop, budget, time   success, Stopped, after a checkpoint
    an instance is taken away     SpotInterrupted, after a checkpoint
    a server is lost              PeerLost: the next generation goes on from the newest checkpoint
    anything else                 the error, which ends the job
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from common.cloud_names import JobState, run_key
from common.pricing import prices_of
from common.resolve_spec import dump
from common.s3_requests import S3_WRITES
from lambda_functions.estimate import check_budget
from local_cloud import run_folder
from local_cloud.generations import Origin, is_loss
from local_cloud.on_instance.beats import Beats
from local_cloud.on_instance.data import Data
from local_cloud.on_instance.expenses import launched, site_of, spending_of, spent_before
from local_cloud.on_instance.generation import Generation
from local_cloud.on_instance.job_record import JobRecords, Superseded
from local_cloud.on_instance.log_lines import CloudObserver
from local_cloud.on_instance.mirror import Mirror
from local_cloud.on_instance.own_role import Post
from local_cloud.on_instance.stop_line import StopLine
from local_cloud.on_instance.task import Task
from local_cloud.on_instance.team import Team
from local_cloud.prepare import PreparedJob
from local_cloud.recorded_run import RecordedRun, Run
from local_cloud.run_folder import RunFolder
from local_cloud.run_result import Load, RunResult, Totals, Watch
from local_cloud.summary import Summary
from parameter_server.checkpoint import CheckpointFolder

LOG = logging.getLogger(__name__)
BY_SIGTERM = "stopped by SIGTERM"
"""What a spot notice becomes: local_cloud/ctrl_c.py."""
SPOT = "SpotInterrupted"
RESULT_FILES = 7
"""Of the run folder, each of one write, that are handed in after the summary has counted."""


class Leader:
    def __init__(self, post: Post, team: Team, task: Task, records: JobRecords, data: Data) -> None:
        self._post, self._team, self._task, self._records, self._data = post, team, task, records, data
        self._observer = CloudObserver(post.settings.stack)
        self._stop = StopLine()
        self._leaving = ""
        job_id = post.instance.job_id
        self._folder = post.settings.work / "run"
        self._mirror = Mirror(data.bucket, self._folder, job_id)
        self._checkpoints = CheckpointFolder(post.checkpoints)

    def run(self) -> None:
        """Raises what the generation ended with, if it is no success; the state machine has heard of it, too."""
        with Beats(self._beat):
            try:
                summary = self._train()
                self._mirror.send(all_of_it=True)
            except Exception as error:
                self._give_up(error)
                raise
            self._say_how_it_ended(summary)

    def _give_up(self, error: Exception) -> None:
        name = "PeerLost" if is_loss(error) else type(error).__name__
        try:
            self._team.members.tell(self._post.name, {"done": True})
            self._mirror.send(all_of_it=True)
        finally:
            self._task.failed(name, str(error))

    # ---- while it goes

    def _beat(self) -> None:
        self._team.members.beat(self._post.name)
        record = self._records.beat()
        self._task.beat(record)
        if record.is_to_stop:
            self._stop.ask("stopped on request")
        self._mirror.send()

    def _leaves(self, name: str) -> None:
        self._leaving = name
        self._stop.ask(f"{name} will be taken away")

    # ---- a generation

    def _train(self) -> Summary:
        resolved, job = self._data.prepare(self._observer, graph_server=None)
        self._mirror.fetch()
        is_new = not (self._folder / run_folder.SPEC).is_file()
        folder = RunFolder.claim(self._folder) if is_new else RunFolder.reopen(self._folder)
        with folder:
            folder.write_text(run_folder.SPEC, dump(resolved))
            origin = self._origin(job)
            if not origin.epoch:  # of graphs that no cutter has made; those were held against it before
                cap, prices = float(self._post.record.text("max_cost_usd")), prices_of(self._post.settings.region)
                check_budget(job.spec, job.sizes, cap, prices)
            run = self._run(job, folder, origin)
            spending = spending_of(run, self._post, self._observer)
            spending.check_start()
            self._say_that_it_trains()
            self._observer.training_starts(run.job_id, str(run.place), job.spec.training.num_epochs)
            return RecordedRun(run, self._observer, spending, began=launched(self._post)).run()

    def _run(self, job: PreparedJob, folder: RunFolder, origin: Origin) -> Run:
        generation = Generation(self._post, self._team, job, origin)

        def train(watch: Watch) -> RunResult:
            result = generation.train(self._told(watch), bucket=self._data.bucket, leaves=self._leaves)
            last = Totals({S3_WRITES: RESULT_FILES})
            return replace(result, totals=result.totals + self._own_requests + last)

        place = f"s3://{self._data.bucket.name}/{run_key(self._post.instance.job_id)}"
        before = spent_before(job, folder, self._post, site_of(job, self._post))
        return Run(job, self._post.instance.job_id, folder, train, origin, before, place)

    def _told(self, watch: Watch) -> Watch:
        """Besides the run itself, the stop line and the dashboard are told."""

        def stoppable(stop: Callable[[str], None]) -> None:
            watch.stoppable(stop)
            self._stop.stoppable(stop)

        def load(load: Load) -> None:
            watch.load(replace(load, totals=load.totals + self._own_requests))
            self._observer.load(load)

        return replace(watch, stoppable=stoppable, load=load)

    @property
    def _own_requests(self) -> Totals:
        return Totals(self._data.bucket.requests) + Totals(self._checkpoints.requests)

    def _origin(self, job: PreparedJob) -> Origin:
        """The newest checkpoint that is whole; later ones, of a time that is lost, are removed."""
        checkpoints, generation = self._checkpoints, self._post.instance.generation
        found = checkpoints.newest(self._observer.note)
        if found is None:
            return Origin(generation)
        found.check_job(job.spec, job.facts)
        checkpoints.remove_after(found.epoch)
        self._observer.note(f"generation {generation} goes on after epoch {found.epoch}")
        return Origin(generation, found.epoch, found.clock.version, found.url)

    # ---- the state machine

    def _say_that_it_trains(self) -> None:
        try:
            self._records.write({"state": JobState.TRAINING.value}, only_from=JobState.STARTING)
        except Superseded:
            self._records.beat()  # it is to stop, which is no end yet; or it is over, and this raises again

    def _say_how_it_ended(self, summary: Summary) -> None:
        reason = summary.stop_reason if isinstance(summary.stop_reason, str) else ""
        if summary.state == "Stopped" and (self._leaving or reason == BY_SIGTERM):
            self._task.failed(SPOT, f"{self._leaving or self._post.name} will be taken away")
        elif summary.state == "Failed":
            self._task.failed("TrainingFailed", str(summary.failure_reason))
        else:
            self._task.done({"state": summary.state, "reason": reason})
