"""How many leases a graph server wants, and what bounds them: from the job spec and what the service grants."""

import math

from common.job_spec import JobSpec
from graph_server.schedule.idle_limit import IdleAfter
from graph_server.schedule.lease_events import LeaseSettings
from graph_server.schedule.stragglers import LateAfter

FIRST_TASK_SECONDS = 20.0
"""Prior of the first wave: cold starts one after another, and the constants."""
FIRST_LEASES = 100
"""Of all graph servers, before anything was measured."""
ADOPT_SECONDS = 1.0
COLD_START_SECONDS = 1.0
"""Before one was measured."""
PATIENCE_SECONDS = 0.1
"""A task that waits no longer than this for a core is not worth a cold start."""
LOSSES_PER_LAMBDA = 10


def lease_settings(spec: JobSpec, *, num_own: int, concurrency: int, number: int = 0) -> LeaseSettings:
    """Of graph server `number`. `num_own`: its intervals; `concurrency`: invocations it may have in flight."""
    backend, servers = spec.backend, spec.cluster.num_graph_servers
    late = LateAfter(backend.relaunch_ratio, backend.relaunch_floor_ms / 1000, FIRST_TASK_SECONDS)
    most = min(num_own, max(1, backend.max_lambdas // servers), max(1, concurrency))
    least = max(1, min(most, math.ceil(backend.min_lambdas / servers)))
    return LeaseSettings(
        num_intervals=num_own,
        target=min(most, max(least, FIRST_LEASES // servers)),
        max_tasks=backend.lease_max_tasks,
        seconds=float(backend.lease_seconds),
        late=late,
        max_losses=LOSSES_PER_LAMBDA * backend.max_lambdas,
        adopt_after_seconds=ADOPT_SECONDS,
        idle=IdleAfter(idle_floor_seconds(spec), COLD_START_SECONDS),
        least=least,
        most=most,
        phase=number / servers,
        open_after_seconds=PATIENCE_SECONDS if backend.name == "hybrid" else 0.0,
    )


def idle_floor_seconds(spec: JobSpec) -> float:
    given = spec.backend.lease_idle_ms
    return 0.0 if given == "auto" else given / 1000
