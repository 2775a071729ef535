"""A training that this machine has no memory for is refused before a role starts, with the numbers and ways out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from common.errors import SpecError
from common.job_setup import derive_programs
from common.job_spec import JobSpec
from common.saga.gathers import WeightedSum
from graph_server.assemble import usable_cores
from graph_server.lease_settings import lease_settings
from local_cloud.cluster import WITH_FUNCTIONS
from local_cloud.lambda_process import LOCAL_CONCURRENCY, concurrency_of_each
from local_cloud.plan.memory import Memory, count_memory
from local_cloud.prepare import PreparedJob

GB = 10**9
WORTH_IT = 0.95
"""Of the memory: what saves less is not named."""
SMALLEST = 4
"""Hidden widths that are tried are no smaller."""


def memory_here(job: PreparedJob) -> Memory:
    """With all roles on this machine, functions included."""
    return count_memory(job, threads=usable_cores(), num_functions=_num_functions(job))


def refuse_what_does_not_fit(job: PreparedJob, available: int) -> None:
    """Raises SpecError."""
    memory = memory_here(job)
    if memory.here <= available:
        return
    parts = sorted(memory.parts.items(), key=lambda part: -part[1])
    listed = ", ".join(f"{name} {_gb(size)}" for name, size in parts if size >= GB / 20)
    tried = [(words, memory_here(other).here) for words, other in _ways_out(job)]
    ways = [f"{words} ({_gb(size)})" for words, size in tried if size < WORTH_IT * memory.here]
    raise SpecError(
        what=f"this training takes about {_gb(memory.here)} of memory, and {_gb(available)} are free on this machine",
        why=f"all roles run here, and together they need: {listed}",
        fix="; ".join([*ways, "several machines (dorylus plan says what each needs)", "or --ignore-memory to go on"]),
    )


def _num_functions(job: PreparedJob) -> int:
    spec, servers = job.spec, job.spec.cluster.num_graph_servers
    if spec.backend.name not in WITH_FUNCTIONS:
        return 0
    own = -(-job.num_intervals // servers)
    each = lease_settings(spec, num_own=own, concurrency=concurrency_of_each(LOCAL_CONCURRENCY, servers))
    return min(each.most * servers, job.num_intervals)


def _ways_out(job: PreparedJob) -> Iterator[tuple[str, PreparedJob]]:
    """What could be set instead, and the job with it."""
    spec, model = job.spec, job.programs.model
    if spec.backend.name in WITH_FUNCTIONS:
        yield "backend = local_cpu", _with(job, "backend", name="local_cpu")
    if spec.cluster.num_graph_servers > 1:
        yield "num_graph_servers = 1", _with(job, "cluster", num_graph_servers=1)
    if spec.training.precision == "float32" and any(isinstance(layer.gather, WeightedSum) for layer in model.layers):
        yield "precision = mixed", _with(job, "training", precision="mixed")
    halved = max(SMALLEST, max(spec.model.hidden_sizes, default=0) // 2)
    if spec.model.hidden_sizes and halved < max(spec.model.hidden_sizes):
        smaller = tuple(min(size, halved) for size in spec.model.hidden_sizes)
        yield f"hidden_size = {', '.join(map(str, smaller))}", _with(job, "model", hidden_size=smaller)


def _with(job: PreparedJob, group: str, **changed: Any) -> PreparedJob:
    part = getattr(job.spec, group).model_copy(update=changed)
    spec: JobSpec = job.spec.model_copy(update={group: part})
    manifest = job.folder.manifest
    widths = {"num_features": manifest.num_features, "num_classes": manifest.num_classes}
    return replace(job, spec=spec, programs=derive_programs(spec, **widths, task=manifest.task))


def _gb(size: int) -> str:
    return f"{size / GB:.1f} GB"
