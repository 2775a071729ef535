"""Graph folders and Parquet of a dataset that is larger than memory: edges are sorted on disk, or go through piece by
piece; what is known of vertices is held, and features of Parquet are not."""

from pathlib import Path

from common.errors import DatasetError
from common.job_spec import DatasetSpec, JobSpec
from common.saga.loss import TRAIN
from graph_server.graph.cut import num_intervals_auto
from graph_server.graph.graph_folder import write_graph_folder
from graph_server.graph.relabelled import EdgesOnDisk
from graph_server.ingest.dataset import Dataset
from graph_server.ingest.detect import find_format, locate
from graph_server.ingest.edge_policies import is_directed, wants_dedup
from graph_server.large.cut_on_disk import cut_on_disk
from graph_server.large.edge_list_graph import EdgeListGraph
from graph_server.large.large_dataset import LargeGraph, large_dataset
from graph_server.large.parquet_graph import ParquetGraph
from graph_server.large.sorted_edges import sort_edges
from graph_server.large.to_parquet import Written, edges_to_parquet
from local_cloud.observer import Observer
from local_cloud.prepare import programs_of, widest_task_input


def write_large(
    spec: JobSpec, base_folder: Path, folder: Path, scratch: Path, memory_bytes: int, observer: Observer
) -> Dataset:
    """The graph folder of a dataset that is read piece by piece; what is left in `scratch` may be removed."""
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
    return dataset


def _large_graph(options: DatasetSpec, base_folder: Path, scratch: Path) -> LargeGraph:
    path = locate(options, base_folder)
    format_name = find_format(options, path)[0]
    if format_name == "edge_list" and path.is_dir():
        return EdgeListGraph(path, options, scratch)
    if format_name == "edge_list":
        raise DatasetError(
            what=f"{path} is an edge list alone",
            why="a graph folder needs what a training needs: labels and features",
            fix="put it into a folder as edges.csv, with features.csv and labels.csv beside it",
        )
    if format_name != "parquet":
        raise not_in_pieces(path, format_name)
    return ParquetGraph.open(path, options)


def not_in_pieces(path: Path, format_name: str) -> DatasetError:
    """The error for a format that has to be read whole."""
    return DatasetError(
        what=f"{path} ({format_name}) cannot be read within --memory-limit",
        why="piece by piece go edge lists, and Parquet as dorylus convert and dorylus generate write it",
        fix=f"leave --memory-limit away; or dorylus convert {path.name} {path.stem}.parquet where there is memory, and "
        "go on from that",
    )


def write_large_parquet(options: DatasetSpec, base_folder: Path, out: Path, memory_bytes: int) -> Written:
    """Of a list of edges, alone or in a folder with features."""
    path = locate(options, base_folder)
    format_name = find_format(options, path)[0]
    if format_name != "edge_list":
        raise not_in_pieces(path, format_name)
    return edges_to_parquet(path, options, out, memory_bytes)
