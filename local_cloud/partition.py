"""Cuts a dataset, and tells what the cut is worth: what would travel in an epoch, what each server would hold.

With a memory limit edges are sorted on disk and features go through piece by piece; without one the dataset is read
as a training reads it. A graph folder is told of as it is.
"""

import resource
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

from common.errors import SpecError
from common.job_setup import derive_programs
from common.job_spec import DatasetSpec, JobSpec
from common.resolve_spec import Layer
from common.saga.cost import stored_bytes
from common.saga.loss import TRAIN
from common.saga.program import Programs
from graph_server.graph.cut import num_intervals_auto
from graph_server.graph.folder_reader import SUFFIX, GraphFolder
from graph_server.graph.graph_folder import write_graph_folder
from graph_server.graph.partition import deal_folder
from graph_server.graph.relabelled import EdgesOnDisk
from graph_server.ingest.dataset import prepare
from graph_server.ingest.detect import find_format, locate
from graph_server.ingest.edge_policies import is_directed, wants_dedup
from graph_server.ingest.write_parquet import refuse_existing
from graph_server.large.cut_on_disk import cut_on_disk
from graph_server.large.edge_list_graph import EdgeListGraph
from graph_server.large.large_dataset import LargeGraph, large_dataset
from graph_server.large.parquet_graph import ParquetGraph
from graph_server.large.shares import Shares, shares
from graph_server.large.sorted_edges import sort_edges
from local_cloud.explain import computers_of
from local_cloud.given_folder import as_it_is, given_folder
from local_cloud.load_job import load_job
from local_cloud.observer import Observer
from local_cloud.payload import GraphCounts, PassPayload, predict_payload
from local_cloud.prepare import cut_options, programs_of, widest_task_input, write_cut


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
            _write_large(spec, base_folder, folder, Path(scratch), memory_bytes, observer)
        return _report(spec, GraphFolder.open(folder), began, observer)


def _write_large(
    spec: JobSpec, base_folder: Path, folder: Path, scratch: Path, memory_bytes: int, observer: Observer
) -> None:
    options = spec.dataset
    observer.doing("sorting edges")
    graph = _large_graph(options, base_folder, scratch)
    edges = sort_edges(
        graph.edges,
        graph.raw.num_nodes,
        decide=lambda reciprocity: is_directed(graph.raw, options, reciprocity),
        dedup=wants_dedup(options, graph.raw),
        folder=scratch,
        memory_bytes=memory_bytes,
    )
    observer.doing("reading vertices")
    dataset = large_dataset(graph, options, edges, scratch / "features.npy")
    programs = programs_of(spec, dataset)
    num_intervals = spec.cut.num_intervals
    if num_intervals == "auto":
        without_loops = len(edges.in_edges.indices) - int(edges.counts["self_loops"])
        num_intervals = num_intervals_auto(dataset.num_nodes, without_loops, widest_task_input(programs))
    observer.doing("cutting")
    train = dataset.masks & TRAIN != 0
    cut = cut_on_disk(edges, num_intervals, method=spec.cut.method, seed=spec.cut.cut_seed, train=train)
    observer.doing("writing")
    write_graph_folder(dataset, cut, folder, edges=EdgesOnDisk(edges.in_edges, cut, symmetric=edges.symmetric))


def _large_graph(options: DatasetSpec, base_folder: Path, scratch: Path) -> LargeGraph:
    path = locate(options, base_folder)
    if find_format(options, path)[0] == "edge_list" and path.is_dir():
        return EdgeListGraph(path, options, scratch)
    return ParquetGraph.open(path, options)


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
        server_bytes=_server_bytes(programs, found, symmetric=manifest.symmetric, num_nodes=manifest.num_nodes),
        seconds=time.monotonic() - began,
        peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def _server_bytes(programs: Programs, found: Shares, *, symmetric: bool, num_nodes: int) -> tuple[int, ...]:
    """All tensors at the start, tables with their ghosts; and the edges, of a directed graph in both directions."""
    edge = (4 if num_nodes < 2**31 else 8) * (1 if symmetric else 2)
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
