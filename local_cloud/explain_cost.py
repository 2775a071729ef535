"""What rules 6 and 7 save: an epoch's arithmetic and bytes by the paper's program, with each rule, and with both."""

from dataclasses import replace
from pathlib import Path

import msgspec

from common.job_setup import declare_model
from common.resolve_spec import Layer
from common.saga.program import Programs, derive
from local_cloud.explain import graph_counts
from local_cloud.load_job import load_job
from local_cloud.observer import Observer
from local_cloud.payload import GraphCounts
from local_cloud.plan.counts import count_work
from local_cloud.prepare import PreparedJob, prepare_job


class ProgramCost(msgspec.Struct, frozen=True, kw_only=True):
    """Of one training epoch, all graph servers together. flops: of tensor tasks and Gathers; edge_bytes: read by
    Gathers, a row for every edge; row_bytes: read and written by tensor tasks; ghost_bytes: sent."""

    name: str
    program: str
    flops: int
    edge_bytes: int
    row_bytes: int
    ghost_bytes: int


RULES = (("paper", False, False), ("hoist", True, False), ("commute", False, True), ("hoist and commute", True, True))


def explain_costs(flags: Layer, *, base_folder: Path, cache_dir: Path, observer: Observer) -> tuple[ProgramCost, ...]:
    """`flags` name model and dataset, which is read and cut as a training would. Raises what that raises."""
    spec = load_job(None, flags, base_folder).spec
    job = prepare_job(spec, base_folder=base_folder, cache_dir=cache_dir, observer=observer)
    counts, manifest = graph_counts(job.folder, spec.cluster.num_graph_servers), job.folder.manifest
    model = declare_model(spec, num_features=manifest.num_features, num_classes=manifest.num_classes)

    def by(hoist: bool, commute: bool) -> Programs:
        derived = job.programs.model
        return derive(model, hoist=hoist, commute=commute, task=derived.task, rounds_rows=derived.rounds_rows)

    return tuple(_cost(name, replace(job, programs=by(*rules)), counts) for name, *rules in RULES)


def _cost(name: str, job: PreparedJob, counts: GraphCounts) -> ProgramCost:
    work = count_work(job, counts)
    return ProgramCost(
        name=name,
        program=str(job.programs.train),
        flops=work.payload.flops,
        edge_bytes=work.edge_bytes,
        row_bytes=work.row_bytes,
        ghost_bytes=work.payload.ghosts,
    )
