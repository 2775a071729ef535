"""Who a role says it is in its hello."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """`name`: a role and a number, as graph0. A role speaks to its own job and generation only."""

    job_id: str
    generation: int
    name: str
    kernels: str = ""
    """Names of the numeric kernels it computes with."""
