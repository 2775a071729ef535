"""The run folder in the bucket: what earlier generations left comes here, and what changes here goes there.

Checkpoints do not pass here: parameter servers write them to the bucket themselves.
"""

import threading
from pathlib import Path

from common.cloud_names import run_key
from local_cloud import run_folder
from local_cloud.on_instance.bucket import Bucket

LEFT = (run_folder.SPEC, run_folder.METRICS, run_folder.TRACE, run_folder.SUMMARY)
"""What a run that goes on reads."""
AT_THE_END = frozenset({run_folder.TRACE})
"""It grows by megabytes a minute; everything else is small."""


class Mirror:
    def __init__(self, bucket: Bucket, folder: Path, job_id: str) -> None:
        self._bucket, self._folder, self._job_id = bucket, folder, job_id
        self._lock = threading.Lock()
        self._sent: dict[str, tuple[int, int]] = {}

    def fetch(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in LEFT:
            if (data := self._bucket.read(run_key(self._job_id, name))) is not None:
                (self._folder / name).write_bytes(data)
                self._sent[name] = _state(self._folder / name)

    def send(self, *, all_of_it: bool = False) -> None:
        """What has changed since it was sent."""
        with self._lock:
            for path in sorted(self._folder.glob("*")):
                is_ours = path.is_file() and not path.name.startswith(".")
                if is_ours and (all_of_it or path.name not in AT_THE_END):
                    self._send(path)

    def _send(self, path: Path) -> None:
        state = _state(path)
        if self._sent.get(path.name) != state:
            self._bucket.send(path, run_key(self._job_id, path.name))
            self._sent[path.name] = state


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
