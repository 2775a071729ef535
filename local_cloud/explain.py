"""The derived stage program of a model, as data: steps with what they read and write, and, with a dataset, their costs.

Without a dataset widths are letters: F features, H hidden, C classes. They are derived with numbers far apart, in which
every letter's share can be read off again, and in which F > H > C, so that narrowing decides as it usually does.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from common import plugins
from common.errors import SpecError
from common.job_setup import declare_model
from common.job_spec import JobSpec
from common.resolve_spec import Layer, refuse_unbuilt, resolve
from common.saga.cost import tensor_width
from common.saga.layer import Model
from common.saga.program import Programs, StageProgram, derive
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.partition import Partition, deal_folder
from graph_server.lease_settings import lease_settings
from local_cloud.lambda_process import LOCAL_CONCURRENCY, concurrency_of_each
from local_cloud.load_job import MODELS, load_job
from local_cloud.observer import Observer
from local_cloud.payload import (
    Computers,
    GraphCounts,
    PassPayload,
    StepPayload,
    pass_links,
    predict_payload,
    predict_step,
)
from local_cloud.prepare import PreparedJob, prepare_job
from parameter_server.assemble import clock_settings

BASE = 10**6
C, H, F = BASE, BASE**2, BASE**3
"""Digits to base 10^6: 8 H + 16 is 8 · 10^12 + 16."""


class Tensor(msgspec.Struct, frozen=True):
    name: str
    width: int | str
    """Values per row: a number, or a term in F, H and C."""


class ExplainedStep(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    once: bool
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]
    cost: StepPayload | None = None
    """Of all intervals, in one pass."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    num_layers: int
    program: str
    steps: tuple[ExplainedStep, ...]
    notes: tuple[str, ...]
    graph: GraphCounts | None = None
    num_graph_servers: int | None = None
    payload: PassPayload | None = None
    """Of one train pass without repeats, e >= 2."""
    payload_total: int | None = None
    computers: Computers | None = None
    links: dict[str, int] | None = None
    """Of the same payload; without functions rows stay where they lie."""


def model_names() -> tuple[str, ...]:
    return plugins.names(MODELS)


def explain_letters(flags: Layer) -> Explanation:
    """`flags` name the model. Raises SpecError for an unknown one, and for what needs a dataset to mean something."""
    stand_in = Layer("no dataset", {"dataset": {"path": "none"}}, is_default=True)
    resolved = resolve([stand_in, flags])
    refuse_unbuilt(resolved)
    spec = resolved.spec
    declared = _with_letters(spec)
    programs = derive(declared, hoist=spec.training.hoist, commute=spec.training.commute)
    letters = ["widths are per row: F features, H hidden, C classes, and F > H > C is assumed"]
    if "model.hidden_size" in resolved.given:
        letters.append(f"H = {spec.model.hidden_size}; for numbers, name a dataset with --dataset")
    return _explanation(spec, declared, programs, notes=letters)


def explain_dataset(flags: Layer, *, base_folder: Path, cache_dir: Path, observer: Observer) -> Explanation:
    """`flags` name model and dataset, which is read and cut as a training would. Raises what that raises."""
    resolved = load_job(None, flags, base_folder)
    job = prepare_job(resolved.spec, base_folder=base_folder, cache_dir=cache_dir, observer=observer)
    declared = declare_model(
        job.spec, num_features=job.folder.manifest.num_features, num_classes=job.folder.manifest.num_classes
    )
    counts, servers = graph_counts(job.folder, job.spec.cluster.num_graph_servers), job.spec.cluster.num_graph_servers
    explained = _explanation(job.spec, declared, job.programs, notes=[], counts=counts)
    payload = predict_job(job, counts)
    computers = computers_of(job.spec, counts)
    return msgspec.structs.replace(
        explained,
        graph=counts,
        num_graph_servers=servers,
        payload=payload,
        payload_total=payload.total,
        computers=computers,
        links=pass_links(payload, computers),
    )


def predict_job(job: PreparedJob, counts: GraphCounts) -> PassPayload:
    every = clock_settings(job.spec, job.facts).eval_frequency == 1
    return predict_payload(job.programs, counts, computers_of(job.spec, counts), every_version_is_evaluated=every)


def computers_of(spec: JobSpec, counts: GraphCounts, *, concurrency: int = LOCAL_CONCURRENCY) -> Computers:
    """`concurrency` of the Lambda service."""
    if spec.backend.name != "lambda":
        return Computers("local_cpu", counts.num_owners)
    each = concurrency_of_each(concurrency, spec.cluster.num_graph_servers)
    leases = [lease_settings(spec, num_own=own, concurrency=each) for own in counts.intervals_per_server]
    return Computers("lambda", sum(settings.target for settings in leases))


def graph_counts(folder: GraphFolder, num_graph_servers: int) -> GraphCounts:
    book = deal_folder(folder, num_graph_servers)
    partitions = [Partition.load(folder, book, server) for server in range(num_graph_servers)]
    loops = sum(int(np.count_nonzero(partition.has_self_loop)) for partition in partitions)
    return GraphCounts(
        num_nodes=folder.manifest.num_nodes,
        num_edges=folder.manifest.num_edges,
        num_without_loop=folder.manifest.num_nodes - loops,
        num_intervals=folder.num_intervals,
        intervals_per_server=tuple(len(partition.own) for partition in partitions),
        num_ghosts=sum(partition.in_edges.num_ghosts for partition in partitions),
        num_backward_ghosts=sum(partition.out_edges.num_ghosts for partition in partitions),
        weighted=folder.manifest.weighted,
    )


def in_letters(width: int) -> str:
    """`8H+16` for 8 · H + 16."""
    terms = [(width // unit % BASE, letter) for unit, letter in ((F, "F"), (H, "H"), (C, "C"))]
    words = [letter if count == 1 else f"{count}{letter}" for count, letter in terms if count]
    return "+".join([*words, *([str(width % BASE)] if width % BASE or not words else [])])


def _with_letters(spec: JobSpec) -> Model:
    if isinstance(spec.model.hidden_size, tuple):
        raise SpecError(
            f"model.hidden_size = {list(spec.model.hidden_size)} without a dataset",
            why="without one every hidden layer is H wide",
            fix="add --dataset, or set --num-layers in its place",
        )
    model = spec.model.model_copy(update={"hidden_size": H})
    return declare_model(spec.model_copy(update={"model": model}), num_features=F, num_classes=C)


def _explanation(
    spec: JobSpec, declared: Model, programs: Programs, *, notes: Sequence[str], counts: GraphCounts | None = None
) -> Explanation:
    train = programs.train
    return Explanation(
        model=declared.name,
        num_layers=spec.model.num_layers,
        program=str(train),
        steps=tuple(_steps(train, programs, counts)),
        notes=(*notes, *_commuted(declared, programs, letters=counts is None)),
    )


def _steps(train: StageProgram, programs: Programs, counts: GraphCounts | None) -> list[ExplainedStep]:
    return [
        ExplainedStep(
            step=str(step),
            once=once,
            reads=_tensors(programs.model, step.reads, letters=counts is None),
            writes=_tensors(programs.model, step.writes, letters=counts is None),
            cost=None if counts is None else predict_step(programs, step, counts),
        )
        for once, steps in ((True, train.once), (False, train.steps))
        for step in steps
    ]


def _tensors(model: Model, names: Sequence[str], *, letters: bool) -> tuple[Tensor, ...]:
    widths = [tensor_width(model, name) for name in names]
    return tuple(Tensor(n, in_letters(w) if letters else w) for n, w in zip(names, widths, strict=True))


def _commuted(declared: Model, programs: Programs, *, letters: bool) -> list[str]:
    """What rule 7 moved, and the widths that decided it."""
    moved = [n for n, layer in enumerate(programs.model.layers) if layer != declared.layers[n]]
    said = []
    for n in moved:
        wide, narrow = declared.widths()[n].gathered, programs.model.widths()[n].gathered
        why = f"{in_letters(wide)} > {in_letters(narrow)}" if letters else f"{wide} > {narrow}"
        said.append(f"layer {n} multiplies before it gathers, because {why}; --no-commute undoes that")
    return said
