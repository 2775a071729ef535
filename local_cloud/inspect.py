"""What the doctor says of a dataset, and what a training of the job's model on it would take. Writes nothing."""

from pathlib import Path

import msgspec

from common.errors import DatasetError
from common.job_setup import check_edge_weights, derive_programs
from common.job_spec import JobSpec
from common.resolve_spec import Layer
from common.saga.program import Programs
from graph_server.assemble import usable_cores
from graph_server.graph.cut import num_intervals_auto
from graph_server.ingest.doctor.attempts import refusal
from graph_server.ingest.doctor.diagnosis import Diagnosis, TimeForecast, in_order
from graph_server.ingest.doctor.examine import examine
from graph_server.ingest.doctor.memory import forecast_memory, memory_findings
from graph_server.ingest.doctor.time import forecast_time
from local_cloud.load_job import dataset_of, load_job
from local_cloud.prepare import widest_task_input


def inspect(target: str, flags: Layer, base_folder: Path) -> Diagnosis:
    """`target`: as of a training. What is wrong with the dataset is a finding; raises SpecError for the rest."""
    diagnosis = examine(dataset_of(target, flags, base_folder), base_folder)
    if diagnosis.num_features is None:
        return diagnosis
    return _with_forecasts(diagnosis, load_job(target, flags, base_folder).spec)


def _with_forecasts(diagnosis: Diagnosis, spec: JobSpec) -> Diagnosis:
    # Without labels the classes are unknown: two are the fewest there can be.
    targets = () if diagnosis.labels is None else diagnosis.labels.targets
    widths = {"num_features": diagnosis.num_features or 1, "num_classes": diagnosis.num_classes or len(targets) or 2}
    programs = derive_programs(spec, **widths, task=diagnosis.task or "multi_class")
    diagnosis = _with_weights(diagnosis, programs)
    widths = ", ".join(str(width) for width in spec.model.hidden_sizes)
    model = f"{spec.model.name}, {spec.model.num_layers} layers" + (f", hidden {widths}" if widths else "")
    memory = forecast_memory(diagnosis, programs, model)
    if memory is None:
        return diagnosis
    found, time = in_order((*diagnosis.findings, *memory_findings(memory))), _time(diagnosis, spec, programs)
    return msgspec.structs.replace(diagnosis, memory=memory, time=time, findings=found)


def _time(diagnosis: Diagnosis, spec: JobSpec, programs: Programs) -> TimeForecast | None:
    num_intervals, loops = spec.cut.num_intervals, diagnosis.edges.self_loops if diagnosis.edges else 0
    if num_intervals == "auto":
        without_loops = (diagnosis.num_edges or 0) - loops
        num_intervals = num_intervals_auto(diagnosis.num_nodes or 0, without_loops, widest_task_input(programs))
    return forecast_time(
        diagnosis, programs, spec.training.num_epochs, num_intervals=num_intervals, num_cores=usable_cores()
    )


def _with_weights(diagnosis: Diagnosis, programs: Programs) -> Diagnosis:
    """Negative ones are for the model to refuse."""
    if diagnosis.edges is None or diagnosis.edges.weights is None:
        return diagnosis
    try:
        check_edge_weights(programs.model, diagnosis.edges.negative_weights)
    except DatasetError as error:
        found = in_order((*diagnosis.findings, refusal("negative_weights", error)))
        return msgspec.structs.replace(diagnosis, accepted=False, findings=found)
    return diagnosis
