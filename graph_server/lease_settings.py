"""How many leases a graph server wants, and what bounds them: from the job spec and what the service grants."""

from common.job_spec import JobSpec
from graph_server.schedule.lease_events import LeaseSettings
from graph_server.schedule.stragglers import LateAfter

FIRST_TASK_SECONDS = 20.0
"""Prior of the first wave: cold starts one after another, and the constants."""
ADOPT_SECONDS = 1.0
LOSSES_PER_LAMBDA = 10


def lease_settings(spec: JobSpec, *, num_own: int, concurrency: int) -> LeaseSettings:
    """`num_own`: intervals of this graph server; `concurrency`: invocations it may have in flight."""
    backend, servers = spec.backend, spec.cluster.num_graph_servers
    late = LateAfter(backend.relaunch_ratio, backend.relaunch_floor_ms / 1000, FIRST_TASK_SECONDS)
    return LeaseSettings(
        num_intervals=num_own,
        target=min(num_own, max(1, backend.max_lambdas // servers), max(1, concurrency)),
        max_tasks=backend.lease_max_tasks,
        seconds=float(backend.lease_seconds),
        late=late,
        max_losses=LOSSES_PER_LAMBDA * backend.max_lambdas,
        adopt_after_seconds=ADOPT_SECONDS,
    )
