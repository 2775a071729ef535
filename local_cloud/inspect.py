"""What the doctor says of a dataset, and what a training of the job's model on it would take. Writes nothing."""

from pathlib import Path

import msgspec

from common.job_setup import derive_programs
from common.job_spec import JobSpec
from common.resolve_spec import Layer
from graph_server.ingest.doctor.diagnosis import Diagnosis, in_order
from graph_server.ingest.doctor.examine import examine
from graph_server.ingest.doctor.memory import forecast_memory, memory_findings
from local_cloud.load_job import dataset_of, load_job


def inspect(target: str, flags: Layer, base_folder: Path) -> Diagnosis:
    """`target`: as of a training. What is wrong with the dataset is a finding; raises SpecError for the rest."""
    diagnosis = examine(dataset_of(target, flags, base_folder), base_folder)
    if diagnosis.num_features is None:
        return diagnosis
    return _with_memory(diagnosis, load_job(target, flags, base_folder).spec)


def _with_memory(diagnosis: Diagnosis, spec: JobSpec) -> Diagnosis:
    # Without labels the classes are unknown: two are the fewest there can be.
    targets = () if diagnosis.labels is None else diagnosis.labels.targets
    widths = {"num_features": diagnosis.num_features or 1, "num_classes": diagnosis.num_classes or len(targets) or 2}
    programs = derive_programs(spec, **widths, task=diagnosis.task or "multi_class")
    widths = ", ".join(str(width) for width in spec.model.hidden_sizes)
    model = f"{spec.model.name}, {spec.model.num_layers} layers" + (f", hidden {widths}" if widths else "")
    memory = forecast_memory(diagnosis, programs, model)
    if memory is None:
        return diagnosis
    found = in_order((*diagnosis.findings, *memory_findings(memory)))
    return msgspec.structs.replace(diagnosis, memory=memory, findings=found)
