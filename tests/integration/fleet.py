"""EC2 as moto plays it knows instances, and nothing runs on them: here each is a process of this machine.

An instance that EC2 has launched is started as its systemd unit would start it; one that is terminated is killed.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from common.cloud_names import GENERATION_TAG, JOB_TAG, PHASE_TAG
from tests.integration.metadata_service import metadata_service
from tests.lambda_functions.job_cloud import JobCloud

LOOK_SECONDS = 0.3
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Started:
    id: str
    job_id: str
    fleet: str
    """Phase and generation."""
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def role(self) -> str:
        """Empty until it has one."""
        _, found, rest = self.log.read_text().partition("this instance is ")
        return rest.partition('"')[0] if found else ""


class Fleet:
    """While the block lasts."""

    def __init__(self, cloud: JobCloud, folder: Path, environment: dict[str, str]) -> None:
        self._cloud, self._folder, self._environment = cloud, folder, environment
        self._stack, self._over = ExitStack(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="fleet")
        self.started: dict[str, Started] = {}

    def __enter__(self) -> "Fleet":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for one in self.started.values():
            end(one)
        self._stack.close()

    def of(self, job_id: str) -> list[Started]:
        """All that there were, in the order of their launch."""
        return [one for one in self.started.values() if one.job_id == job_id]

    def named(self, job_id: str, role: str, generation: int = 1) -> Started | None:
        """As soon as an instance has become that."""
        fleet = f"train {generation}"
        return next((one for one in self.of(job_id) if one.fleet == fleet and one.role == role), None)

    def logs(self) -> str:
        return "\n".join(f"--- {one.id}, {one.fleet}\n{one.log.read_text()[-4000:]}" for one in self.started.values())

    def _follow(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            there = self._cloud.instances()
            for id, tags in there.items():
                if id not in self.started:
                    self.started[id] = self._start(id, tags)
            for id in self.started.keys() - there.keys():
                end(self.started[id])

    def _start(self, id: str, tags: dict[str, str]) -> Started:
        url = self._stack.enter_context(metadata_service(id, tags))
        work, log = self._folder / id, self._folder / f"{id}.log"
        work.mkdir()
        own = {"DORYLUS_METADATA_URL": url, "DORYLUS_WORK": str(work), "DORYLUS_PORT": "0"}
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "local_cloud.on_instance"],
                env={**os.environ, **self._environment, **own},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        return Started(id, tags[JOB_TAG], f"{tags[PHASE_TAG]} {tags[GENERATION_TAG]}", process, log)


def end(started: Started) -> None:
    if started.process.poll() is None:
        started.process.send_signal(signal.SIGKILL)
    started.process.wait()
