"""The run folder: everything a training leaves behind, in `runs/<job_id>/` or where `--run-dir` says.

spec.yaml  metrics.jsonl  trace.jsonl  weights.safetensors  weights_last.safetensors  predictions.parquet  summary.json

Lines are appended while the job runs; every other file is written beside its place and renamed into it, so that nobody
ever sees half of one.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet
import safetensors.numpy

from common.errors import SpecError

SPEC, SUMMARY = "spec.yaml", "summary.json"
METRICS, TRACE = "metrics.jsonl", "trace.jsonl"
BEST_WEIGHTS, LAST_WEIGHTS, PREDICTIONS = "weights.safetensors", "weights_last.safetensors", "predictions.parquet"


def new_job_id(name: str) -> str:
    """<name>-<UTC yyyymmddThhmmss>-<6 hex>"""
    return f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


@dataclass(frozen=True)
class RunFolder:
    path: Path
    made: tuple[Path, ...]
    """Folders that were not there before, innermost first."""

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
        return cls(path, missing)

    def discard(self) -> None:
        """Take back the folders that were made, as far as they are empty: nothing came of the job."""
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
        self._file = path.open("ab")

    def write(self, struct: msgspec.Struct) -> None:
        self._file.write(msgspec.json.encode(struct) + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


def _unwritable(path: Path, why: str) -> SpecError:
    return SpecError(
        f"the run folder {path} cannot be written", why=why, fix="name another folder with --run-dir or --output"
    )
