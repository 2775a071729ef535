"""A graph server out of a job spec and a partition: its tensors, its scheduler, its backend."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from common import plugins
from common.job_setup import GraphFacts, derive_programs, loss_of
from common.job_spec import JobSpec
from common.trace import StepRecord
from common.wire.channel import Channel
from common.wire.clients import GraphClient, ParameterClient
from graph_server.backends.base import Backend, BackendOptions, FunctionOptions
from graph_server.cores import Cores
from graph_server.graph.partition import Partition
from graph_server.schedule.scheduler import Scheduler
from graph_server.server import GraphServer, Links, ShellOptions
from graph_server.stages.held import Held
from graph_server.stages.load import load_constants

BACKENDS = "graph_server.backends"
BACKEND_FILES: Mapping[str, str] = {"auto": "local_cpu", "lambda": "aws_lambda"}
"""Where the spec's word is not the file's name."""


@dataclass(frozen=True)
class AssemblyOptions:
    """dtype: float64 for gradient checks."""

    functions: FunctionOptions | None = None
    record: Callable[[StepRecord], None] = lambda _: None
    generation: int = 1
    dtype: Any = np.float32


def graph_server(
    spec: JobSpec, facts: GraphFacts, partition: Partition, channel: Channel, options: AssemblyOptions
) -> GraphServer:
    """Loads the constants and runs what is hoisted: this takes a while."""
    generation, threads = options.generation, usable_cores()
    cores = Cores(threads)
    widths = {"num_features": facts.num_features, "num_classes": facts.num_classes}
    programs = derive_programs(spec, **widths, task=facts.task)
    held = Held(programs, partition, seed=spec.training.seed, dtype=np.dtype(options.dtype))
    load_constants(held)
    shards = spec.cluster.num_parameter_servers
    parameters = ParameterClient(channel, num_parameter_servers=shards, generation=generation)
    backend_options = BackendOptions(
        model=programs.model,
        loss=loss_of(spec, facts.train_class_counts, facts.task),
        seed=spec.training.seed,
        parameters=parameters,
        threads=threads,
        functions=options.functions,
        cores=cores,
    )
    backend: Backend = plugins.load(BACKENDS, backend_file(spec)).Backend(backend_options)
    others = tuple(n for n in range(spec.cluster.num_graph_servers) if n != partition.server)
    announce_to = others if spec.training.mode == "sync" else ()
    return GraphServer(
        held,
        _scheduler(spec, held, facts, backend),
        backend=backend,
        links=Links(parameters, GraphClient(channel, generation=generation), announce_to),
        options=ShellOptions(threads, options.record, generation, cores),
    )


def backend_file(spec: JobSpec) -> str:
    return BACKEND_FILES.get(spec.backend.name, spec.backend.name)


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _scheduler(spec: JobSpec, held: Held, facts: GraphFacts, backend: Backend) -> Scheduler:
    return Scheduler(
        held.programs,
        feeds=(held.partition.in_edges.feeds, held.partition.out_edges.feeds),
        num_intervals=facts.num_intervals,
        mode=spec.training.mode,
        places={"graph": usable_cores(), "tensor": max(1, backend.places)},
        staleness=spec.training.staleness,
    )
