"""Whose checkpoint is it? A job goes on from its own only: one that is cut, modelled and trained alike. Pure.

The machine may be another one (cluster, backend, budget, output), and so may the end of training.
"""

from typing import Any

import msgspec

from common.errors import CheckpointError
from common.job_setup import GraphFacts
from common.job_spec import JobSpec
from common.spec_layers import show

DECIDING = ("dataset", "cut", "model", "training")
"""Groups of the job spec that decide what is computed."""
MAY_CHANGE = frozenset(
    {
        "dataset.path",  # the same content elsewhere is the same: its fingerprint is compared
        "training.num_epochs",
        "training.use_early_stop",
        "training.early_stop_rounds",
        "training.early_stop_min_delta",
        "training.target_metric",
    }
)


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`keys`: full name -> value of all that must be the same when the job goes on, seeds included."""

    job_id: str
    generation: int
    keys: dict[str, Any]
    facts: GraphFacts


def job_record(spec: JobSpec, facts: GraphFacts, *, job_id: str = "", generation: int = 1) -> JobRecord:
    groups = spec.model_dump(mode="json", include=set(DECIDING))
    keys = {name: value for name, value in _flat(groups).items() if name not in MAY_CHANGE}
    return JobRecord(job_id=job_id, generation=generation, keys=keys, facts=facts)


def check_same_job(found: JobRecord, spec: JobSpec, facts: GraphFacts, where: str) -> None:
    """Raises CheckpointError that names every key that differs, with both values. `where`: of the checkpoint."""
    now = job_record(spec, facts)
    differences = [
        f"{name} is {show(now.keys.get(name))}, and was {show(found.keys.get(name))}"
        for name in sorted(now.keys.keys() | found.keys.keys())
        if now.keys.get(name) != found.keys.get(name)
    ]
    if not differences and found.facts != facts:
        differences = [_of_the_data(found.facts, facts)]
    if differences:
        raise CheckpointError(
            f"the checkpoint {where} is of another job",
            why="; ".join(differences),
            fix="set it as it was, or start a new run",
        )


def _of_the_data(found: GraphFacts, now: GraphFacts) -> str:
    if found.fingerprint != now.fingerprint:
        return f"the dataset has changed: its fingerprint is {now.fingerprint[:12]}, and was {found.fingerprint[:12]}"
    return f"the graph is cut otherwise: cut_sha256 is {now.cut_sha256[:12]}, and was {found.cut_sha256[:12]}"


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
