"""The summary of a job: one struct, written to summary.json and printed by --json."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from common.pricing import CostItem, added
from common.wire.channel import Traffic
from local_cloud.asynchrony import Asynchrony
from local_cloud.observer import EpochReport

LINKS = ("graph_graph", "graph_lambda", "parameter_lambda", "parameter_graph")


class LinkBytes(msgspec.Struct, frozen=True):
    """payload: raw row, weight and gradient buffers; overhead: everything else."""

    payload: int = 0
    overhead: int = 0


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Of a job that ended, in whatever way. Metrics are those of the best weights version, over the user's masks; None
    if nothing was evaluated, or the mask is empty."""

    job_id: str
    run_dir: str
    state: Literal["Completed", "Stopped", "Failed"]
    metric_name: str = "accuracy"
    test_metric: float | None = None
    valid_metric: float | None = None
    test_accuracy: float | None = None
    valid_accuracy: float | None = None
    """Beside whatever other metric; None of a regression."""
    best_epoch: int | None = None
    epochs: int = 0
    """Epochs done."""
    seconds: float
    """From the command to the summary, reading and cutting included."""
    epoch_seconds_median: float | None = None
    weights_sha256: str | None = None
    """Of the last weights."""
    cut_sha256: str
    bit_reproducible: bool = True
    """All roles and functions computed with the same numeric kernels, and not in async."""
    tasks: int = 0
    """Tensor tasks done."""
    relaunches: int = 0
    lost_leases: int = 0
    max_staleness: int = 0
    """Of any row that was read, in epochs; 0 but in async."""
    asynchrony: Asynchrony | UnsetType = UNSET
    """Only in async."""
    bytes_moved: dict[str, LinkBytes]
    lambda_gb_seconds: float = 0.0
    lambda_requests: int = 0
    cost_usd: float | None = None
    """What the run would have cost in us-east-1: each server a cluster.instance_type, from the command to the summary;
    Lambda as metered. In the cloud: from a server's launch until it is torn down, with the bucket and endpoints."""
    bill: tuple[CostItem, ...] = ()
    """What cost_usd is the sum of, and what has no known price."""
    peak_pss_bytes: int = 0
    restarts: int = 0
    """After a role was lost. Whatever is counted here is of all starts, also of a run that was resumed."""
    failure_reason: str | UnsetType = UNSET
    """Only of a job that failed."""
    stop_reason: str | UnsetType = UNSET
    """Only of a job that was stopped: it can be resumed."""


def with_earlier(now: Summary, earlier: Summary) -> Summary:
    """Of a run that was resumed: what it took before is added."""
    links = {
        link: LinkBytes(of.payload + more.payload, of.overhead + more.overhead)
        for link, of in now.bytes_moved.items()
        for more in (earlier.bytes_moved.get(link, LinkBytes()),)
    }
    return msgspec.structs.replace(
        now,
        seconds=earlier.seconds + now.seconds,
        bit_reproducible=earlier.bit_reproducible and now.bit_reproducible,
        tasks=earlier.tasks + now.tasks,
        relaunches=earlier.relaunches + now.relaunches,
        lost_leases=earlier.lost_leases + now.lost_leases,
        max_staleness=max(earlier.max_staleness, now.max_staleness),
        bytes_moved=links,
        lambda_gb_seconds=earlier.lambda_gb_seconds + now.lambda_gb_seconds,
        lambda_requests=earlier.lambda_requests + now.lambda_requests,
        cost_usd=(earlier.cost_usd or 0.0) + (now.cost_usd or 0.0),
        bill=added(earlier.bill, now.bill),
        peak_pss_bytes=max(earlier.peak_pss_bytes, now.peak_pss_bytes),
        restarts=earlier.restarts + now.restarts,
    )


def epoch_seconds_median(reports: Sequence[EpochReport]) -> float | None:
    return statistics.median(report.seconds for report in reports) if reports else None


def bytes_moved(traffic: Traffic | None) -> dict[str, LinkBytes]:
    """Of the links between roles that train; what the launcher asks, and a parameter server of itself, is left out."""
    payload: Mapping[str, int] = {} if traffic is None else traffic.payload
    overhead: Mapping[str, int] = {} if traffic is None else traffic.overhead
    return {link: LinkBytes(payload.get(link, 0), overhead.get(link, 0)) for link in LINKS}


def to_json(summary: Summary) -> str:
    """Indented, in the order of the fields, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=2).decode() + "\n"
