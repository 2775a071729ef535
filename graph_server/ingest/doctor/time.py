"""How long a training would take here: counts, and the rates that `dorylus plan` assumes. Nothing is measured."""

from common.saga.epoch_work import WITHIN, Sizes, epoch_work, shares
from common.saga.program import Programs
from graph_server.ingest.doctor.diagnosis import Diagnosis, TimeForecast


def forecast_time(
    diagnosis: Diagnosis, programs: Programs, num_epochs: int, *, num_intervals: int, num_cores: int
) -> TimeForecast | None:
    """Of all cores together, as far as there are intervals for them. None where something could not be counted."""
    nodes, edges, features = diagnosis.num_nodes, diagnosis.num_edges, diagnosis.num_features
    if nodes is None or edges is None or features is None:
        return None
    sizes = Sizes(
        num_nodes=nodes,
        num_edges=edges,
        num_intervals=num_intervals,
        num_features=features,
        num_classes=programs.model.widths()[-1].out,
        task=programs.model.task,
        weighted=bool(diagnosis.edges and diagnosis.edges.weights),
    )
    each, used = shares(epoch_work(programs, sizes)), min(num_cores, num_intervals)
    seconds = (each.tensor + each.graph) / used
    return TimeForecast(
        epoch_seconds=(seconds / WITHIN, seconds * WITHIN),
        num_epochs=num_epochs,
        num_intervals=num_intervals,
        num_cores=used,
    )
