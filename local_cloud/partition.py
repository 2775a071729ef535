"""Cuts a dataset, and tells what the cut is worth: what would travel in an epoch, what each server would hold.

With a memory limit the dataset is read piece by piece (in_pieces.py), without one as a training reads it. A graph
folder is told of as it is.
"""

import resource
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

from common.errors import SpecError
from common.job_setup import derive_programs
from common.job_spec import JobSpec
from common.resolve_spec import Layer
from common.saga.cost import FLOAT_BYTES, stored_bytes
from common.saga.program import Programs
from graph_server.graph.folder_reader import SUFFIX, GraphFolder
from graph_server.graph.manifest import Manifest
from graph_server.graph.partition import deal_folder
from graph_server.ingest.dataset import prepare
from graph_server.ingest.write_parquet import refuse_existing
from graph_server.large.shares import Shares, shares
from local_cloud.explain import computers_of
from local_cloud.given_folder import as_it_is, given_folder
from local_cloud.in_pieces import write_large
from local_cloud.load_job import load_job
from local_cloud.observer import Observer
from local_cloud.payload import GraphCounts, PassPayload, predict_payload
from local_cloud.prepare import cut_options, programs_of, write_cut


class PartitionReport(msgspec.Struct, frozen=True, kw_only=True):
    """payload: of an epoch after the first; server_bytes: of tensors and edges of each graph server."""

    name: str
    num_nodes: int
    num_edges: int
    directed: bool
    method: str
    num_intervals: int
    cut_sha256: str
    model: str
    shares: Shares
    payload: PassPayload
    payload_total: int
    server_bytes: tuple[int, ...]
    seconds: float
    peak_rss_bytes: int
    """Of this process, mapped files included."""


def partition(
    target: str, out: Path | None, flags: Layer, base_folder: Path, *, memory_bytes: int | None, observer: Observer
) -> PartitionReport:
    """out: where the graph folder is kept. Raises SpecError, DatasetError; then nothing is written."""
    began = time.monotonic()
    path = None if out is None else _checked(base_folder / out.expanduser())
    spec = load_job(target, flags, base_folder).spec
    given = given_folder(spec.dataset, base_folder)
    if given is not None and path is None and as_it_is(spec, given):
        return _report(spec, given, began, observer)
    with tempfile.TemporaryDirectory(prefix=".partition-", dir=base_folder if path is None else path.parent) as scratch:
        folder = path or Path(scratch) / f"cut{SUFFIX}"
        if memory_bytes is None:
            observer.doing("reading the dataset")
            dataset = prepare(spec.dataset, base_folder)
            observer.doing("cutting")
            write_cut(dataset, cut_options(spec, dataset, programs_of(spec, dataset)), folder)
        else:
            write_large(spec, base_folder, folder, Path(scratch), memory_bytes, observer)
        return _report(spec, GraphFolder.open(folder), began, observer)


def _report(spec: JobSpec, folder: GraphFolder, began: float, observer: Observer) -> PartitionReport:
    observer.doing("counting")
    manifest, num_servers = folder.manifest, spec.cluster.num_graph_servers
    widths = {"num_features": manifest.num_features, "num_classes": manifest.num_classes}
    programs = derive_programs(spec, **widths, task=manifest.task)
    found = shares(folder, deal_folder(folder, num_servers))
    counts = GraphCounts(
        num_nodes=manifest.num_nodes,
        num_edges=manifest.num_edges,
        num_without_loop=found.num_without_loop,
        num_intervals=folder.num_intervals,
        intervals_per_server=tuple(server.intervals for server in found.servers),
        num_ghosts=sum(server.ghosts for server in found.servers),
        num_backward_ghosts=sum(server.backward_ghosts for server in found.servers),
        weighted=manifest.weighted,
    )
    payload = predict_payload(programs, counts, computers_of(spec, counts), every_version_is_evaluated=False)
    return PartitionReport(
        name=manifest.name,
        num_nodes=manifest.num_nodes,
        num_edges=manifest.num_edges,
        directed=manifest.directed,
        method=manifest.cut.method,
        num_intervals=folder.num_intervals,
        cut_sha256=manifest.cut.cut_sha256,
        model=spec.model.name,
        shares=found,
        payload=payload,
        payload_total=payload.total,
        server_bytes=_server_bytes(programs, found, manifest),
        seconds=time.monotonic() - began,
        peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def _server_bytes(programs: Programs, found: Shares, manifest: Manifest) -> tuple[int, ...]:
    """All tensors at the start, tables with their ghosts; and the edges, of a directed graph in both directions."""
    edge = (4 if manifest.num_nodes < 2**31 else 8) + (FLOAT_BYTES if manifest.weighted else 0)
    edge *= 1 if manifest.symmetric else 2
    return tuple(
        stored_bytes(programs, num_own=one.vertices, num_ghosts=one.ghosts, num_backward_ghosts=one.backward_ghosts)
        + one.vertices * 8
        + one.edges * edge
        for one in found.servers
    )


def _checked(path: Path) -> Path:
    if path.suffix != SUFFIX:
        raise SpecError(
            what=f"{path.name} is not the name of a graph folder",
            why="a cut is kept as one",
            fix=f"name it {path.stem}{SUFFIX}",
        )
    refuse_existing(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def bytes_of(text: str) -> int:
    """`2GB`, `500 MB`, or a number of bytes. Raises SpecError."""
    number, unit = text.strip().upper().removesuffix("B"), 1
    for ending, size in (("K", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12)):
        if number.endswith(ending):
            number, unit = number[:-1].strip(), size
    try:
        found = float(number) * unit
    except ValueError:
        found = np.nan
    if not 0 < found < 2**63:
        raise SpecError(f"--memory-limit {text}", why="it is a number of bytes", fix="write 2GB, 500MB or 2000000000")
    return int(found)
