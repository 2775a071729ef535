"""What is refused before anything is paid for: a readable status, no record, no execution, no instance."""

from typing import Any

import pytest

from tests.integration.world import World

REFUSED = {
    "dataset: cora\ntraining: {epoch: 5}\n": "did you mean",
    "dataset: cora\n  training: 5\n": "YAML",
    "dataset: s3://small-bucket/datasets/nobody\n": "nothing is at s3://small-bucket/datasets/nobody",
    "dataset: s3://strangers/cora.npz\n": "this deployment does not allow its bucket",
    "dataset: cora\nbudget: {max_cost_usd: 0.0001}\n": "the budget is $0.0001",
}


@pytest.mark.parametrize("spec", REFUSED, ids=lambda spec: REFUSED[spec][:20])
def test_a_job_that_cannot_be(here: World, spec: str):
    told = here.tell(here.cloud.put("jobs/wrong.yaml", spec))
    assert told["state"] == "Failed"
    status = here.cloud.read(f"runs/{told['job_id']}/status.json")
    assert REFUSED[spec] in status["failure_reason"]
    assert here.cloud.jobs.find(told["job_id"]) is None
    assert not here.execution(told["job_id"])
    assert not here.fleet.of(told["job_id"])


def test_a_buckets_own_event_has_its_key_encoded(here: World):
    """The same upload in the other form: one refusal, under one id."""
    key, encoded = "jobs/50% + größer.yaml", "jobs/50%25+%2B+gr%C3%B6%C3%9Fer.yaml"
    event = here.cloud.put(key, "dataset: 7\n")
    detail = event["detail"]
    record: dict[str, Any] = {
        "eventTime": event["time"],
        "s3": {
            "bucket": detail["bucket"],
            "object": {"key": encoded, "versionId": detail["object"]["version-id"], "size": detail["object"]["size"]},
        },
    }
    assert here.tell({"Records": [record]}) == here.tell(event)
