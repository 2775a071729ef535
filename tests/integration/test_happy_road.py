"""From an uploaded spec to results in the bucket, with every part real but AWS itself."""

import io
import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow.parquet
import pytest
import safetensors.numpy

from common.pricing import instance_hour
from common.trace import read
from common.weights_hash import weights_sha256
from local_cloud.on_instance.expenses import TEARDOWN_SECONDS
from local_cloud.on_instance.lead import RESULT_FILES
from local_cloud.summary import Summary
from local_cloud.training import RunOptions, train_job
from tests.infra.calls import Call
from tests.infra.deployed import Deployed
from tests.infra.least import asked, check
from tests.infra.synthesis import OTHER, synthesise
from tests.integration.calls import SERVERS
from tests.integration.world import World
from tests.local_cloud.jobs import ROOT, Recorder, load

CORA = ROOT / "graph_server" / "datasets" / "bundled" / "cora.npz"
SPEC = """
dataset: PLACE
cut: {num_intervals: 6}
training: {num_epochs: 5, seed: 3}
cluster: {num_graph_servers: 2, instance_type: c7g.large}
backend: {name: lambda, max_lambdas: 4}
output: {save_model_frequency: 2}
"""
ROLES = {
    "job-trigger": "JobTriggerjobtrigger",
    "stop-job": "JobTriggerstopjob",
    "launch-servers": "Orchestrationlaunchservers",
    "collect": "Orchestrationcollect",
    "sweep": "Sweepersweep",
}
"""Function -> how its policies' logical ids begin."""
OF_SERVERS = {
    "s3:GetObject *cdk-*-assets-*": "the boot, which fetches what is installed",
    "s3:GetObject *:colleagues/[*]": "a dataset in a bucket that was named",
    "s3:GetObject *:archive/[*]": "the same",
    "s3:ListBucket *:colleagues": "the same",
    "s3:ListBucket *:archive": "the same",
    "s3:PutObject */graphs/[*]": "the cutter, if the graph was not there yet",
    "s3:AbortMultipartUpload *": "an upload of large files that fails",
    "s3:DeleteObject *": "checkpoints that are older than two",
    "states:SendTaskFailure *": "a generation that fails",
    "lambda:InvokeFunction *": "tensor functions of zones in which no job has stood",
    "logs:*": "the CloudWatch agent",
    "ssm:UpdateInstanceInformation *": "the session agent",
    "ssmmessages:*": "the session agent",
}
"""Grants of servers that one job may not need."""
LEFT = {
    "metrics.jsonl",
    "predictions.parquet",
    "spec.yaml",
    "status.json",
    "summary.json",
    "trace.jsonl",
    "traces/0001-graph0.jsonl",
    "traces/0001-graph1.jsonl",
    "weights.safetensors",
    "weights_last.safetensors",
}


@dataclass(frozen=True)
class Finished:
    """A job that is over. secret: half of its servers' key pair; used: by functions; asked: of S3, by servers."""

    job_id: str
    record: dict[str, Any]
    summary: dict[str, Any]
    secret: str
    used: dict[str, float]
    asked: Counter[str]


@pytest.fixture(scope="module")
def finished(here: World) -> Finished:
    here.cloud.put("datasets/my/cora.npz", CORA.read_bytes())
    before, asked_before = here.functions.meter(), here.billed.copy()
    event = here.cloud.put("jobs/my cora + 50% für dich.yaml", SPEC.replace("PLACE", here.url("datasets/my/cora.npz")))
    job_id = here.tell(event)["job_id"]
    secret = here.server_key(job_id)
    assert here.tell(event)["job_id"] == job_id  # told again: nothing happens
    record = here.end(job_id)
    assert record["state"] == "Completed", here.story(job_id)
    after = here.functions.meter()
    used = {name: after[name] - before[name] for name in ("requests", "gb_seconds")}
    summary = json.loads(here.read(f"runs/{job_id}/summary.json"))
    return Finished(job_id, record, summary, secret, used, here.billed - asked_before)


def test_results_are_in_the_bucket_and_nothing_runs_any_more(here: World, finished: Finished):
    job_id = finished.job_id
    assert job_id.startswith("my-cora-50-f-r-dich-")
    assert finished.record["generation"] == 1
    assert [one.fleet for one in here.fleet.of(job_id)] == ["cut 0", "train 1", "train 1", "train 1"]
    names = {key.removeprefix(f"runs/{job_id}/") for key in here.cloud.keys(f"runs/{job_id}/")}
    assert {name for name in names if not name.startswith("checkpoints/")} == LEFT
    assert {name.split("/")[1] for name in names - LEFT} == {"epoch-000004", "epoch-000005"}
    assert here.cloud.read(f"runs/{job_id}/status.json")["state"] == "Completed"
    assert not here.cloud.instances()
    assert not here.cloud.jobs.active()


def test_the_weights_are_those_of_one_machine(here: World, finished: Finished, cache_dir: Path, tmp_path: Path):
    alone, summary, job_id = alone_on_this_machine(tmp_path, cache_dir), finished.summary, finished.job_id
    weights = safetensors.numpy.load(here.read(f"runs/{job_id}/weights_last.safetensors"))
    assert weights_sha256(weights) == summary["weights_sha256"] == alone.weights_sha256
    assert summary["cut_sha256"] == alone.cut_sha256
    assert summary["test_accuracy"] == alone.test_accuracy
    assert [line["epoch"] for line in here.metrics(job_id)] == [1, 2, 3, 4, 5]
    table = pyarrow.parquet.read_table(io.BytesIO(here.read(f"runs/{job_id}/predictions.parquet")))
    assert table.num_rows == 2708
    trace = tmp_path / "trace.jsonl"
    trace.write_bytes(here.read(f"runs/{job_id}/trace.jsonl"))
    steps = read(trace)
    assert {step.server for step in steps} == {0, 1}
    assert sum(bool(step.backend) for step in steps) == summary["tasks"] == alone.tasks


def alone_on_this_machine(folder: Path, cache_dir: Path) -> Summary:
    """The same spec, on local_cpu."""
    spec = folder / "alone.yaml"
    spec.write_text(SPEC.replace("PLACE", str(CORA)).replace("name: lambda, ", "name: local_cpu, "))
    options = RunOptions(folder, cache_dir, run_dir=folder / "alone", in_process=True)
    return train_job(load(str(spec), {}, folder), options, Recorder())


def test_the_bill_is_the_meters(finished: Finished):
    """The cutter, three servers from their launch to the end, functions as the service metered them, and S3 as it was
    asked: the last files are handed in after the summary, so their number is an assumption, on the safe side."""
    summary, requests, gb_seconds = finished.summary, finished.used["requests"], finished.used["gb_seconds"]
    assert summary["lambda_requests"] == requests > 0
    assert summary["lambda_gb_seconds"] == pytest.approx(gb_seconds, rel=1e-6)
    cut = int(finished.record["cut_seconds"])
    trained = summary["seconds"] - cut
    cutter, trained = cut + TEARDOWN_SECONDS, math.ceil(trained + TEARDOWN_SECONDS)
    servers = (cutter + 3 * trained) / 3600 * instance_hour("c7g.large")
    functions = gb_seconds * 0.0000133334 + requests * 0.2e-6
    bill = {item["what"]: item for item in summary["bill"]}
    reads, writes = (bill[f"S3 {kind}"]["quantity"] for kind in ("reads", "writes"))
    assert reads == finished.asked["reads"] > 0
    assert finished.asked["writes"] <= writes <= finished.asked["writes"] + RESULT_FILES
    bucket = reads * 0.4e-6 + writes * 5e-6 + bill["S3 storage"]["usd"]
    assert summary["cost_usd"] == pytest.approx(servers + functions + bucket, rel=1e-6)
    assert sum(item["usd"] or 0 for item in summary["bill"]) == pytest.approx(summary["cost_usd"])
    months = (cutter + 3 * trained) / 3600 / 730
    assert bill["disks"]["quantity"] == pytest.approx(100 * months, rel=1e-2)
    assert bill["disks"]["usd"] is None
    assert [item["what"] for item in summary["bill"]] == [
        "cutter: 1 x c7g.large",
        "S3 reads",
        "S3 writes",
        "S3 storage",
        "disks",
        "graph server: 2 x c7g.large",
        "parameter server: 1 x c7g.large",
        "Lambda arm64",
        "Lambda requests",
    ]


def test_the_servers_key_is_told_nowhere(here: World, finished: Finished):
    """Neither in what was written nor in a log; and the parameter that held it is gone."""
    assert not boto3.client("ssm").describe_parameters()["Parameters"]
    told = here.fleet.logs() + str(finished.record)
    told += "".join(here.read(key).decode(errors="replace") for key in here.cloud.keys(f"runs/{finished.job_id}/"))
    assert len(finished.secret) == 40
    assert finished.secret not in told


def test_everybody_asks_for_no_more_than_they_may(here: World, finished: Finished, tmp_path: Path):
    """All that servers and functions have asked of AWS so far, put to the roles that the stack gives them."""
    deployed = Deployed(synthesise(tmp_path, dict(OTHER)))
    invoked = Call.of("lambda", "Invoke", {"FunctionName": finished.record["function"]})
    assert finished.used["requests"] > 0
    check(deployed.policy("ServersRole"), asked(deployed, {*here.calls[SERVERS], invoked}), OF_SERVERS, all_of_it=False)
    for name, part in ROLES.items():
        if name in here.calls:
            policy, requests = deployed.policy(part), asked(deployed, here.calls[name])
            assert policy.replay(requests).refused == []
            for statement in policy.statements:
                needed = statement.effect == "Allow" and statement.grants & policy.replay(requests).used
                assert not needed or policy.without(statement).replay(requests).refused
    assert {"job-trigger", "launch-servers", "collect", "sweep"} <= set(here.calls)
