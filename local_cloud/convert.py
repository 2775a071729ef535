"""Writes a dataset anew, as Parquet or as a graph folder: all or nothing, and never over something that is there.

NAME.parquet    the graph as its file holds it; policies stay options of the job
NAME.dorylus    the graph as a training with these settings would hold it: policies applied, cut into intervals
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import DatasetError, SpecError
from common.job_spec import DatasetSpec
from common.resolve_spec import Layer, ResolvedSpec
from graph_server.graph.folder_reader import SUFFIX as GRAPH_FOLDER
from graph_server.ingest.dataset import Dataset, check_size, check_types, prepare, reader_defaults
from graph_server.ingest.detect import find_format, is_bundled_name, locate
from graph_server.ingest.write_parquet import SUFFIX as PARQUET
from graph_server.ingest.write_parquet import WEIGHTS_NOTE, refuse_existing, write_parquet
from local_cloud.in_pieces import write_large, write_large_parquet
from local_cloud.load_job import load_job
from local_cloud.observer import Silent
from local_cloud.prepare import cut_options, programs_of, write_cut

READING = (
    "path",
    "format",
    "edge_weight",
    "split_index",
    "drop_unknown_edges",
    "negative_ids",
    "allow_pickle",
    "edge_type",
    "node_type",
)
"""Keys of `dataset` that say how a file is read; all others are policies."""


_Told = tuple[int, int, tuple[str, ...]]
"""Vertices, edges, notes."""


@dataclass(frozen=True)
class Converted:
    """num_edges: as they are written; num_bytes: of all files; notes: what was decided, what did not come along."""

    num_nodes: int
    num_edges: int
    num_bytes: int
    notes: tuple[str, ...]


def convert(target: str, out: Path, flags: Layer, base_folder: Path, *, memory_bytes: int | None = None) -> Converted:
    """`target`: as of a training. memory_bytes: to stay within; None: the dataset is read whole.

    Raises DatasetError or SpecError; then nothing is written.
    """
    path = base_folder / out.expanduser()
    writers: dict[str, Callable[[ResolvedSpec, Path, Path], _Told]]
    writers = {PARQUET: _to_parquet, GRAPH_FOLDER: _to_graph_folder}
    if memory_bytes is not None:
        writers = {PARQUET: _Within(memory_bytes).to_parquet, GRAPH_FOLDER: _Within(memory_bytes).to_graph_folder}
    if path.suffix not in writers:
        raise SpecError(
            what=f"{out} is the name of no format that is written",
            why="its ending says what to write",
            fix=f"name it {path.stem}{PARQUET} for tables, or {path.stem}{GRAPH_FOLDER} for a graph folder",
        )
    refuse_existing(path)
    resolved = load_job(target, flags, base_folder)
    try:
        num_nodes, num_edges, notes = writers[path.suffix](resolved, path, base_folder)
    except OSError as error:
        raise DatasetError(
            what=f"{path} cannot be written: {error}",
            why="the disk is full, or the folder may not be written to",
            fix="choose another place",
        ) from error
    return Converted(num_nodes, num_edges, _size(path), (*notes, *_left_behind(resolved, base_folder)))


def _to_parquet(resolved: ResolvedSpec, path: Path, base_folder: Path) -> _Told:
    _refuse_policies(resolved)
    options = resolved.spec.dataset
    source = locate(options, base_folder)
    raw = find_format(options, source)[1].read(source, options)
    check_size(raw)
    check_types(raw, options)
    write_parquet(raw, path)
    return raw.num_nodes, raw.num_edges, (*raw.notes, *(WEIGHTS_NOTE,) * (raw.weights is not None))


def _to_graph_folder(resolved: ResolvedSpec, path: Path, base_folder: Path) -> _Told:
    spec = resolved.spec
    dataset = prepare(spec.dataset, base_folder)
    write_cut(dataset, cut_options(spec, dataset, programs_of(spec, dataset)), path)
    return _told(dataset)


def _told(dataset: Dataset) -> _Told:
    report: dict[str, Any] = dict(dataset.report)
    return dataset.num_nodes, int(report["edges"]), (*report["notes"], *report["warnings"])


@dataclass(frozen=True)
class _Within:
    """The same, piece by piece."""

    memory_bytes: int

    def to_parquet(self, resolved: ResolvedSpec, path: Path, base_folder: Path) -> _Told:
        _refuse_policies(resolved)
        done = write_large_parquet(resolved.spec.dataset, base_folder, path, self.memory_bytes)
        return done.num_nodes, done.num_edges, tuple(done.notes)

    def to_graph_folder(self, resolved: ResolvedSpec, path: Path, base_folder: Path) -> _Told:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".convert-", dir=path.parent) as scratch:
            return _told(write_large(resolved.spec, base_folder, path, Path(scratch), self.memory_bytes, Silent()))


def _refuse_policies(resolved: ResolvedSpec) -> None:
    """What was given and would have no effect is refused, never ignored."""
    reading = {f"dataset.{key}" for key in READING}
    idle = sorted(key for key in resolved.given - reading if key.partition(".")[0] in ("dataset", "cut", "model"))
    changed = [key for key in idle if resolved.sources[key].startswith("--")]
    if changed:
        raise SpecError(
            what=f"{', '.join(changed)} would change nothing in a {PARQUET}",
            why="the tables hold the graph as its file does; policies and cuts are applied when it is trained on",
            fix=f"give it to dorylus train, or write a {GRAPH_FOLDER}",
        )


def _left_behind(resolved: ResolvedSpec, base_folder: Path) -> tuple[str, ...]:
    """Settings that the format is known to work with are its reader's, and not part of the data."""
    options: DatasetSpec = resolved.spec.dataset
    settings = reader_defaults(options, base_folder).get(resolved.spec.model.name, {})
    if not settings:
        return ()
    known = "bundled" if is_bundled_name(options.path) else "its format"
    listed = ", ".join(f"{key}: {value}" for key, value in settings.items())
    return (f"settings known to work with {options.path} ({known}) do not come along: {listed}",)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
