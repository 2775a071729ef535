"""How many leases, and how long they may be idle: what a job spec says and what the service grants."""

import pytest

from common.job_spec import JobSpec
from graph_server.lease_settings import FIRST_LEASES, PATIENCE_SECONDS, lease_settings
from graph_server.schedule.lease_events import LeaseSettings


def settings(num_own: int = 30, concurrency: int = 1000, servers: int = 1, **backend: object) -> LeaseSettings:
    spec = JobSpec.model_validate(
        {"dataset": "cora", "cluster": {"num_graph_servers": servers}, "backend": {"name": "lambda", **backend}}
    )
    return lease_settings(spec, num_own=num_own, concurrency=concurrency)


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ({}, (1, 30, 30)),
        ({"max_lambdas": 12}, (1, 12, 12)),
        ({"concurrency": 5}, (1, 5, 5)),
        ({"num_own": 500, "max_lambdas": 300}, (1, FIRST_LEASES, 300)),
        ({"num_own": 500, "max_lambdas": 300, "min_lambdas": 200}, (200, 200, 300)),
        ({"servers": 3, "max_lambdas": 10, "min_lambdas": 4}, (2, 3, 3)),
        ({"servers": 4, "max_lambdas": 400, "num_own": 90}, (1, 25, 90)),
        ({"servers": 9, "max_lambdas": 4}, (1, 1, 1)),
        ({"num_own": 1, "min_lambdas": 8}, (1, 1, 1)),
        ({"num_own": 0}, (1, 0, 0)),
    ],
)
def test_least_start_and_most_of_one_graph_server(given: dict, bounds: tuple[int, int, int]):
    made = settings(**given)
    assert (made.least, made.target, made.most) == bounds


@pytest.mark.parametrize(("given", "seconds"), [("auto", 0.0), (0, 0.0), (2500, 2.5)])
def test_the_floor_of_idleness(given: object, seconds: float):
    made = settings(lease_idle_ms=given)
    assert made.idle is not None
    assert made.idle.floor_seconds == seconds


def test_only_where_cores_help_leases_are_opened_with_patience():
    assert settings().open_after_seconds == 0.0
    assert settings(name="hybrid").open_after_seconds == PATIENCE_SECONDS
