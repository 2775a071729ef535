"""What a training would need and cost on AWS, before anything is started.

Counts are exact: they come from the job's own program and the cut graph. Seconds and dollars are an estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from common.instances import Instance, instance
from common.job_spec import JobSpec
from common.price_table import PriceTable
from common.pricing import prices_of
from common.saga.epoch_work import shares
from graph_server.lease_settings import lease_settings
from local_cloud.costs import HERE, Site
from local_cloud.explain import graph_counts
from local_cloud.payload import Computers, GraphCounts
from local_cloud.plan.counts import Work, count_work
from local_cloud.plan.estimate import (
    Cluster,
    Functions,
    Range,
    cpu_epoch,
    endpoint_dollars,
    in_words,
    lambda_dollars,
    lambda_epoch,
    least_share,
    price_ratio,
    server_dollars,
)
from local_cloud.plan.memory import Memory, count_memory
from local_cloud.prepare import PreparedJob

OTHERS = ("c7g.2xlarge", "c7a.2xlarge", "c7i.2xlarge", "r7g.xlarge", "r7i.xlarge")
"""Beside what the spec asks for: compute and memory, each architecture."""
ROOM = 0.9
"""Of a box's memory that a role may fill."""
Between = tuple[float, float]


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run the job. Seconds and dollars: (low, high)."""

    instance_type: str
    backend: Literal["local_cpu", "lambda"]
    spot: bool
    fits: bool
    """Every server's memory."""
    epoch_seconds: Between
    seconds: Between
    usd: Between


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    model: str
    graph: GraphCounts
    num_epochs: int
    instance_type: str
    box_memory_bytes: int
    memory_bytes: tuple[int, ...]
    """Of each graph server."""
    parameter_server_bytes: int
    flops: int
    links: dict[str, dict[str, int]]
    """Backend -> bytes of an epoch by link."""
    leases: int
    tensor_share: float
    price_ratio: float
    least_share: float
    lambda_pays: bool
    verdict: str
    options: tuple[Option, ...]
    budget_usd: float | None
    notes: tuple[str, ...]
    prices_of: str


@dataclass(frozen=True)
class _Needs:
    """What the job needs, wherever it runs, and what its deployment has."""

    work: Work
    memory: Memory
    functions: Functions
    site: Site

    @property
    def prices(self) -> PriceTable:
        return prices_of(self.site.region)


def plan_job(job: PreparedJob, site: Site = HERE) -> Plan:
    """Raises SpecError for an instance type without a price."""
    spec, counts, prices = (
        job.spec,
        graph_counts(job.folder, job.spec.cluster.num_graph_servers),
        prices_of(site.region),
    )
    box, work, functions = (
        instance(spec.cluster.instance_type, prices),
        count_work(job, counts),
        _functions(spec, counts),
    )
    memory = count_memory(job, threads=box.vcpus, num_functions=functions.leases)
    each, r = shares(work), price_ratio(box, site.functions or box.architecture, prices)
    options = _options(spec, _Needs(work, memory, functions, site))
    pays = each.f > least_share(r) and _value(options[1]) > _value(options[0])
    return Plan(
        name=spec.name,
        model=spec.model.name,
        graph=counts,
        num_epochs=spec.training.num_epochs,
        instance_type=box.name,
        box_memory_bytes=box.memory_bytes,
        memory_bytes=tuple(server.total for server in memory.graph_servers),
        parameter_server_bytes=memory.parameter_server,
        flops=work.flops,
        links={
            "local_cpu": work.links(Computers("local_cpu", counts.num_owners)),
            "lambda": work.links(Computers("lambda", functions.leases)),
        },
        leases=functions.leases,
        tensor_share=each.f,
        price_ratio=r,
        least_share=least_share(r),
        lambda_pays=pays,
        verdict=in_words(each, r, pays=pays),
        options=options,
        budget_usd=spec.budget.max_cost_usd,
        notes=(*_notes(spec, box, memory, options), *_beside(site, prices)),
        prices_of=f"{prices.region}, {prices.date}",
    )


def _functions(spec: JobSpec, counts: GraphCounts) -> Functions:
    concurrency = spec.backend.max_lambdas
    leases = [lease_settings(spec, num_own=own, concurrency=concurrency) for own in counts.intervals_per_server]
    total = max(1, sum(each.target for each in leases))
    return Functions(total, spec.backend.memory_mb, float(spec.backend.lease_seconds))


def _options(spec: JobSpec, needs: _Needs) -> tuple[Option, ...]:
    names = dict.fromkeys((spec.cluster.instance_type, *OTHERS))
    return tuple(
        option
        for name in names
        for spot in (False, True)
        for option in _both(spec, needs, instance(name, needs.prices), spot=spot)
    )


def _both(spec: JobSpec, needs: _Needs, box: Instance, *, spot: bool) -> Sequence[Option]:
    work, functions, site, prices = needs.work, needs.functions, needs.site, needs.prices
    cluster = Cluster(spec.cluster.num_graph_servers, spec.cluster.num_parameter_servers)
    alone, away = cpu_epoch(work, box, cluster), lambda_epoch(work, box, cluster, functions)
    epochs, fits = spec.training.num_epochs, needs.memory.most <= ROOM * box.memory_bytes

    def option(backend: Literal["local_cpu", "lambda"], epoch: Range, usd: Range) -> Option:
        return Option(
            instance_type=box.name,
            backend=backend,
            spot=spot,
            fits=fits,
            epoch_seconds=_between(epoch),
            seconds=_between(epoch * epochs),
            usd=_between(usd),
        )

    def servers(epoch: Range) -> Range:
        beside = endpoint_dollars(epoch * epochs, site.endpoints, prices)
        return server_dollars(epoch * epochs, box, cluster, spot=spot, prices=prices) + beside

    functions_usd = lambda_dollars(away * epochs, site.functions or box.architecture, functions, prices)
    return option("local_cpu", alone, servers(alone)), option("lambda", away, servers(away) + functions_usd)


def _value(option: Option) -> float:
    """1 / (seconds x dollars), in the middle of the estimates."""
    return 1 / (Range(*option.seconds).middle * Range(*option.usd).middle)


def _between(of: Range) -> Between:
    return of.low, of.high


def _notes(spec: JobSpec, box: Instance, memory: Memory, options: Sequence[Option]) -> list[str]:
    notes = [
        "seconds and dollars are estimates from counts, with their range; boot, reading, S3, disks and logs come on top"
    ]
    if memory.most > ROOM * box.memory_bytes:
        notes.append(
            f"a graph server needs {memory.most / 1e9:.1f} GB and {box.name} has {box.memory_bytes / 1e9:.1f} GB: "
            "take more graph servers, or a type with more memory"
        )
    chosen = [option for option in options if option.instance_type == box.name and not option.spot]
    cap = spec.budget.max_cost_usd
    if cap is not None and all(option.usd[0] > cap for option in chosen):
        notes.append(f"budget.max_cost_usd = {cap} is below every estimate for {box.name}: the run would end early")
    return notes


def _beside(site: Site, prices: PriceTable) -> list[str]:
    if not site.endpoints:
        return []
    hour = site.endpoints * prices.interface_endpoint_hour
    return [f"private endpoints are in it while the job runs: ${hour:.2f} an hour, and as much while none does"]
