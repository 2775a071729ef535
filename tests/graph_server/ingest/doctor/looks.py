"""What the doctor says of a small graph in memory, for the tests of this room."""

from typing import Any

from common.job_spec import DatasetSpec
from graph_server.ingest.doctor.diagnosis import Diagnosis, Finding
from graph_server.ingest.doctor.examine import examine_graph
from tests.graph_server.datasets.folders import raw_graph


def look_at(*, options: dict[str, Any] | None = None, **changes: Any) -> Diagnosis:
    """A ring of four vertices, both ways, with changes."""
    return examine_graph(raw_graph(**changes), DatasetSpec(path="small", **(options or {})))


def codes(diagnosis: Diagnosis) -> set[str]:
    return {one.code for one in diagnosis.findings}


def finding(diagnosis: Diagnosis, code: str) -> Finding:
    (found,) = [one for one in diagnosis.findings if one.code == code]
    return found
