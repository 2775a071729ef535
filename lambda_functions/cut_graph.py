"""What is known of a job whose graph was cut before, by an earlier job on the same data: its spec in full, its sizes.

Readers look at the data, so only the cutter knows what they declare usual; it leaves that beside the graph folder.
"""

import json
from dataclasses import dataclass
from typing import Any

import boto3
import msgspec

from common.cloud_names import DEFAULTS, MANIFEST
from common.job_spec import JobSpec
from common.resolve_spec import Layer, resolve
from common.saga.epoch_work import Sizes
from common.saga.tasks import Task
from lambda_functions.run_status import object_exists

WEIGHTED_FORMAT = 2
"""`format_version` of a graph folder whose edges have weights."""


@dataclass(frozen=True)
class CutGraph:
    spec: JobSpec
    sizes: Sizes


class _Cut(msgspec.Struct):
    num_intervals: int


class _Manifest(msgspec.Struct):
    """What is looked at; graph_server/graph/manifest.py has all of it."""

    format_version: int
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    cut: _Cut
    task: Task = "multi_class"


def cut_graph(spec: JobSpec, graph: str, bucket: str) -> CutGraph | None:
    """`graph`: prefix of its graph folder. None if that is still to be made, or comes with the program."""
    if not graph or not object_exists(bucket, f"{graph}{MANIFEST}"):
        return None
    below = [
        Layer(one["source"], one["values"], is_default=True) for one in json.loads(_read(bucket, graph + DEFAULTS))
    ]
    given: dict[str, Any] = json.loads(spec.model_dump_json(exclude_unset=True))
    found = msgspec.json.decode(_read(bucket, graph + MANIFEST), type=_Manifest)
    sizes = Sizes(
        num_nodes=found.num_nodes,
        num_edges=found.num_edges,
        num_intervals=found.cut.num_intervals,
        num_features=found.num_features,
        num_classes=found.num_classes,
        task=found.task,
        weighted=found.format_version == WEIGHTED_FORMAT,
    )
    return CutGraph(resolve([*below, Layer("the job spec", given)]).spec, sizes)


def _read(bucket: str, key: str) -> bytes:
    body: bytes = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return body
