"""How much memory and disk a training would take, by counts and declared widths. Nothing is measured."""

from common.saga.cost import stored_bytes
from common.saga.program import Programs
from graph_server.ingest.doctor.diagnosis import Diagnosis, Finding, Level, MemoryForecast
from graph_server.ingest.memory import available_memory_bytes

_END, _ROW, _FLOAT = 8, 8, 4
"""Bytes of one end of an edge as it is read, of an id, of a feature."""


def forecast_memory(diagnosis: Diagnosis, programs: Programs, model: str) -> MemoryForecast | None:
    """None where vertices, edges or features could not be counted."""
    nodes, edges, features = diagnosis.num_nodes, diagnosis.num_edges, diagnosis.num_features
    if nodes is None or edges is None or features is None:
        return None
    is_directed = bool(diagnosis.edges and diagnosis.edges.directed)
    source = 4 if nodes < 2**31 else 8
    weight = _FLOAT if diagnosis.edges and diagnosis.edges.weights else 0
    rows = nodes * features * _FLOAT
    edge_rows = nodes * _ROW + edges * (source + weight)
    return MemoryForecast(
        dataset=rows + edges * (2 * _END + weight) + nodes * (2 * _ROW + 1),
        # ids, order and labels, masks and loops; sums of weights
        graph_folder=rows + edge_rows + nodes * (3 * _ROW + 2 + 2 * weight),
        training=stored_bytes(programs, num_own=nodes) + edge_rows * (2 if is_directed else 1),
        model=model,
        available=available_memory_bytes(),
    )


def memory_findings(memory: MemoryForecast) -> tuple[Finding, ...]:
    largest = max(memory.dataset, memory.training)
    if largest <= memory.available:
        return ()
    return (
        Finding(
            code="memory",
            level=Level.WARNING,
            what=f"{largest / 1e9:.1f} GB are needed, {memory.available / 1e9:.1f} GB of memory are free",
            why="on one machine all graph servers share its memory",
            fix="use a machine with more memory, fewer features or a narrower model",
        ),
    )
