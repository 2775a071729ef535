"""The run folder: everything a training leaves behind, in `runs/<job_id>/` or where `--run-dir` says.

spec.yaml  metrics.jsonl  trace.jsonl  weights.safetensors  weights_last.safetensors  predictions.parquet  summary.json
checkpoints/

Lines are appended while the job runs; every other file is written beside its place and renamed into it, so that nobody
ever sees half of one. Whoever trains in a folder holds its lock, which no way of ending leaves behind.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet
import safetensors.numpy

from common.errors import SpecError

SPEC, SUMMARY = "spec.yaml", "summary.json"
METRICS, TRACE = "metrics.jsonl", "trace.jsonl"
CHECKPOINTS = "checkpoints"
BEST_WEIGHTS, LAST_WEIGHTS, PREDICTIONS = "weights.safetensors", "weights_last.safetensors", "predictions.parquet"

T = TypeVar("T")


def new_job_id(name: str) -> str:
    """<name>-<UTC yyyymmddThhmmss>-<6 hex>"""
    return f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


@dataclass(frozen=True)
class RunFolder:
    path: Path
    made: tuple[Path, ...]
    """Folders that were not there before, innermost first."""
    lock: int
    """A file handle: what it locks is free when this process ends."""

    @classmethod
    def claim(cls, path: Path) -> "RunFolder":
        """Makes the folder. Raises SpecError if it is not empty or cannot be written."""
        try:
            missing = tuple(folder for folder in (path, *path.parents) if not folder.exists())
            path.mkdir(parents=True, exist_ok=True)
            found = sorted(entry.name for entry in path.iterdir())
        except OSError as error:
            raise _unwritable(path, error.strerror or str(error)) from None
        if found:
            shown = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
            raise SpecError(
                f"the run folder {path} is not empty",
                why=f"it holds {shown}, and results of two runs would mix",
                fix="name a new folder with --run-dir, or leave --run-dir away",
            )
        if not os.access(path, os.W_OK | os.X_OK):
            raise _unwritable(path, "Permission denied")
        return cls(path, missing, _lock(path))

    @classmethod
    def reopen(cls, path: Path) -> "RunFolder":
        """One that a run was begun in. Raises SpecError if it is none, cannot be written or is in use."""
        if not (path / SPEC).is_file():
            raise SpecError(
                f"{path} is not a run folder",
                why=f"it has no {SPEC}",
                fix="name the folder that a run has left, such as runs/<job_id>",
            )
        if not os.access(path, os.W_OK | os.X_OK):
            raise _unwritable(path, "Permission denied")
        return cls(path, (), _lock(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self.lock)

    @property
    def checkpoints(self) -> str:
        return str(self.path.resolve() / CHECKPOINTS)

    def discard(self) -> None:
        """Give it up, and take back the folders that were made, as far as they are empty: nothing came of the job."""
        os.close(self.lock)
        for folder in self.made:
            with contextlib.suppress(OSError):
                folder.rmdir()

    def write_text(self, name: str, text: str) -> None:
        self._write(name, lambda beside: beside.write_bytes(text.encode()))

    def write_weights(self, name: str, weights: Mapping[str, npt.NDArray[Any]], version: int) -> None:
        arrays = {key: np.ascontiguousarray(weights[key]) for key in sorted(weights)}
        facts = {"weights_version": str(version)}
        # Not save_file: its files are for their owner's eyes only, whatever the umask says.
        self._write(name, lambda beside: beside.write_bytes(safetensors.numpy.save(arrays, metadata=facts)))

    def write_table(self, name: str, table: pyarrow.Table) -> None:
        self._write(name, lambda beside: pyarrow.parquet.write_table(table, beside))

    def _write(self, name: str, write: Callable[[Path], object]) -> None:
        beside = self.path / f".{name}.{os.getpid()}"
        try:
            write(beside)
            os.replace(beside, self.path / name)
        finally:
            beside.unlink(missing_ok=True)


class JsonLines:
    """Appends one struct a line, and gives each line to the system at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab")

    def write(self, struct: msgspec.Struct) -> None:
        self._file.write(msgspec.json.encode(struct) + b"\n")
        self._file.flush()

    def rewrite(self, structs: Sequence[msgspec.Struct]) -> None:
        """These instead of what stands there; at no moment is it less than both have in common."""
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        beside.write_bytes(b"".join(msgspec.json.encode(struct) + b"\n" for struct in structs))
        os.replace(beside, self._path)
        self._file.close()
        self._file = self._path.open("ab")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


def read_lines(path: Path, kind: type[T]) -> list[T]:
    """What JsonLines wrote, as far as it is whole: the last line may have been cut off by whatever ended the run."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [msgspec.json.decode(line, type=kind) for line in lines]


def _lock(path: Path) -> int:
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise SpecError(
            f"the run folder {path} is in use",
            why="another process trains in it",
            fix="wait for it, or stop it with Ctrl-C or SIGTERM",
        ) from None
    return handle


def _unwritable(path: Path, why: str) -> SpecError:
    return SpecError(
        f"the run folder {path} cannot be written", why=why, fix="name another folder with --run-dir or --output"
    )
