"""An upload becomes a job, once; or a status.json that says why not, and nothing is started."""

import json
import re
from urllib.parse import quote_plus

import boto3
import pytest

from common.cloud_names import JobState
from lambda_functions.job_table import JobTable
from lambda_functions.job_trigger import handler
from lambda_functions.money_checks import check_concurrency, check_vcpus, wake
from tests.lambda_functions.job_cloud import SPEC, ZONES, put_graph, request

GRAPH = "s3://small-bucket/datasets/papers"


def upload(cloud, text: str = SPEC, key: str = "jobs/first.yaml") -> dict[str, str]:
    return handler(cloud.put(key, text), None)


def refused(cloud, text: str | bytes, key: str = "jobs/first.yaml") -> str:
    """The reason in status.json. Nothing was started."""
    answer = handler(cloud.put(key, text), None)
    assert answer["state"] == "Failed"
    status = cloud.read(f"runs/{answer['job_id']}/status.json")
    assert status["state"] == "Failed"
    assert not cloud.executions()
    assert not cloud.jobs.active()
    assert cloud.sweeps() == "DISABLED"
    return str(status["failure_reason"])


def test_an_upload_becomes_a_job(cloud):
    answer = upload(cloud)
    job_id = answer["job_id"]
    assert job_id.startswith("first-20261201T100000-")
    assert cloud.executions() == {job_id: "RUNNING"}
    assert cloud.jobs.active() == {job_id}
    assert cloud.sweeps() == "ENABLED"
    assert cloud.read(f"runs/{job_id}/status.json")["state"] == "Pending"
    record = cloud.jobs.get(job_id)
    assert json.loads(record["spec"]) == {"name": "first", "dataset": {"path": "cora"}}
    assert (record["num_servers"], record["graph"], record["zones"]) == (2, "", list(ZONES))
    assert record["deadline"] - record["created"] == 48 * 3600


def test_the_execution_is_told_the_job_and_nothing_else(cloud):
    job_id = upload(cloud)["job_id"]
    states = boto3.client("stepfunctions")
    arn = states.list_executions(stateMachineArn=cloud.machine)["executions"][0]["executionArn"]
    assert json.loads(states.describe_execution(executionArn=arn)["input"]) == {"job_id": job_id}


def test_a_repeated_event_does_nothing(cloud):
    event = cloud.put("jobs/first.yaml", SPEC)
    first = handler(event, None)
    cloud.jobs.set(first["job_id"], {"state": JobState.TRAINING.value})
    assert handler(event, None) == {"job_id": first["job_id"], "state": "Training"}
    assert len(cloud.executions()) == 1
    assert cloud.keys("runs/") == [f"runs/{first['job_id']}/status.json"]


def test_an_event_that_is_told_twice_at_once_is_one_job(cloud, monkeypatch):
    """The second telling looks before the first one has written, and writes after it."""
    event = cloud.put("jobs/first.yaml", SPEC)
    first = handler(event, None)
    looks = []

    def find(jobs: JobTable, item: str):
        looks.append(item)
        return None if len(looks) == 1 else really(jobs, item)

    really = JobTable.find
    monkeypatch.setattr(JobTable, "find", find)
    assert handler(event, None) == first
    assert cloud.read(f"runs/{first['job_id']}/status.json")["state"] == "Pending"
    assert len(cloud.executions()) == 1


def test_a_job_that_was_recorded_and_not_started_is_started_by_the_next_event(cloud):
    event = cloud.put("jobs/first.yaml", SPEC)
    first = handler(event, None)
    arn = boto3.client("stepfunctions").list_executions(stateMachineArn=cloud.machine)["executions"][0]["executionArn"]
    boto3.client("stepfunctions").stop_execution(executionArn=arn)
    assert handler(event, None)["job_id"] == first["job_id"]


def test_the_same_content_is_refused_while_it_runs_and_starts_again_after(cloud):
    first = upload(cloud)
    again = upload(cloud, key="jobs/first.yaml")
    assert again["state"] == "Failed"
    reason = cloud.read(f"runs/{again['job_id']}/status.json")["failure_reason"]
    assert f"the same spec runs already, as job {first['job_id']}" in reason
    assert len(cloud.executions()) == 1
    cloud.jobs.finish(first["job_id"], JobState.COMPLETED, "")
    assert upload(cloud)["state"] == "Pending"
    assert len(cloud.executions()) == 2


@pytest.mark.parametrize("name", ["a+b", "50%", "my graph", "größe", "a%2Bb"])
def test_odd_keys_in_both_forms_of_event(cloud, name):
    """EventBridge gives the key as it is; a bucket's own notification encodes it."""
    event = cloud.put(f"jobs/{name}.yaml", SPEC)
    stored = event["detail"]["object"]
    encoded = {"key": quote_plus(stored["key"], safe="/"), "size": stored["size"], "versionId": stored["version-id"]}
    notification = {
        "Records": [
            {"eventTime": "2026-12-01T10:00:00.000Z", "s3": {"bucket": {"name": cloud.bucket}, "object": encoded}}
        ]
    }
    first = handler(event, None)
    assert first["state"] == "Pending"
    assert handler(notification, None)["job_id"] == first["job_id"]
    assert len(cloud.executions()) == 1


def test_a_bad_spec_gets_a_readable_status(cloud):
    reason = refused(cloud, "dataset: cora\nmodel: {nam: gcn}\ntraining: {lr: -1}\n")
    assert "nam" in reason
    assert "training.lr = -1" in reason
    assert "first.yaml:3" in reason


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\xff\xfe", "is not UTF-8 text"),
        ("dataset: cora\n" + "#" * 100_000, "a job spec has at most 100,000 here"),
        ("dataset: ./here\n", "in the cloud a dataset is s3://... or bundled: cora"),
        ("dataset: s3://strangers/x\n", "this deployment does not allow its bucket"),
        ("dataset: s3://small-bucket/private/x\n", "servers read datasets below datasets/"),
        (f"dataset: {GRAPH}\n", "nothing is at s3://small-bucket/datasets/papers"),
        ("dataset: s3://colleagues/x\n", "s3://colleagues/x cannot be read"),
        ("dataset: cora\ncluster: {instance_type: c7g.huge}\n", "c7g.huge is not offered"),
        ("dataset: cora\nbudget: {max_cost_usd: 0.001}\n", "5 minutes of 2 servers alone cost"),
    ],
)
def test_what_is_wrong_is_said_before_it_costs(cloud, text, words):
    assert words in refused(cloud, text)


def test_a_repeated_bad_spec_leaves_one_status(cloud):
    event = cloud.put("jobs/first.yaml", "dataset:\n")
    assert handler(event, None) == handler(event, None)
    assert len(cloud.keys("runs/")) == 1


def test_what_is_no_spec_is_refused(cloud):
    assert "a job spec's name ends in" in refused(cloud, "x", key="jobs/edges.csv")


def test_a_folder_is_no_job(cloud):
    assert handler(cloud.put("jobs/", ""), None) == {}
    assert cloud.keys("runs/") == []


def test_json_is_a_spec_too(cloud):
    assert upload(cloud, '{"dataset": "cora", "name": "mine"}', "jobs/x.json")["job_id"].startswith("mine-")


def test_equal_data_read_and_cut_alike_has_one_graph_folder(cloud):
    def graph_of(text: str, key: str) -> str:
        return str(cloud.jobs.get(upload(cloud, text, key)["job_id"])["graph"])

    cloud.put("datasets/papers/edges.csv", "a,b\n")
    cloud.put("datasets/papers2/edges.csv", "another, whose name begins alike")
    spec = f"dataset: {GRAPH}\n"
    first = graph_of(spec, "jobs/a.yaml")
    assert first.startswith("graphs/")
    assert first.endswith(".dorylus/")
    assert graph_of(f"{spec}cluster: {{num_graph_servers: 3}}\n", "jobs/b.yaml") == first
    assert graph_of(f"{spec}cut: {{num_intervals: 7}}\n", "jobs/c.yaml") != first
    cloud.put("datasets/papers2/edges.csv", "changed")
    assert graph_of(f"{spec}training: {{seed: 1}}\n", "jobs/d.yaml") == first
    cloud.put("datasets/papers/edges.csv", "a,b\nb,c\n")
    assert graph_of(f"{spec}training: {{seed: 2}}\n", "jobs/e.yaml") != first


def test_a_given_graph_folder_needs_no_cut(cloud):
    cloud.put("datasets/papers.dorylus/manifest.json", "{}")
    answer = upload(cloud, "dataset: s3://small-bucket/datasets/papers.dorylus\n")
    assert cloud.jobs.get(answer["job_id"])["graph"] == ""


class Account:
    """What an account says of itself: moto has other numbers, and no quotas of EC2."""

    def __init__(self, *, vcpus=5.0, functions=10):
        self.vcpus, self.functions = vcpus, functions

    def describe_instance_types(self, InstanceTypes):
        return {"InstanceTypes": [{"VCpuInfo": {"DefaultVCpus": 8}}]}

    def get_service_quota(self, ServiceCode, QuotaCode):
        return {"Quota": {"Value": self.vcpus}}

    def get_account_settings(self):
        return {"AccountLimit": {"ConcurrentExecutions": self.functions}}


def test_quotas_are_looked_at(monkeypatch):
    monkeypatch.setattr(boto3, "client", lambda name: Account())
    with pytest.raises(Exception, match="2 x c7g.2xlarge have 16 vCPUs(.|\n)*on-demand instances is 5"):
        check_vcpus(request(SPEC))
    with pytest.raises(Exception, match="100 functions at once(.|\n)*concurrency is 10"):
        check_concurrency(request(f"{SPEC}backend: {{max_lambdas: 100}}\n"))
    check_concurrency(request(SPEC))  # nobody asked for 100


def test_a_function_that_sleeps_is_woken(cloud, monkeypatch):
    invoked = []

    class Asleep:
        def get_function_configuration(self, FunctionName):
            return {"State": "Inactive"}

        def invoke(self, FunctionName, Payload):
            invoked.append(FunctionName)

    monkeypatch.setattr(boto3, "client", lambda name: Asleep())
    wake("small-tensor-0")
    assert invoked == ["small-tensor-0"]


def test_the_budget_of_a_graph_that_was_cut_is_held_against_the_estimate(cloud):
    """Before anything is paid for: by the manifest's counts, and what the dataset's reader declares usual."""
    cloud.put("datasets/papers/edges.csv", "a,b\n")
    put_graph(cloud, GRAPH, num_nodes=2_000_000_000, num_edges=32_000_000_000)
    text = f"dataset: {GRAPH}\nbackend: {{name: local_cpu}}\nbudget: {{max_cost_usd: USD}}\n"
    reason = refused(cloud, text.replace("USD", "0.1"))
    assert "the budget is $0.1" in reason
    found = re.search(r"50 epochs on 2 x c7g.2xlarge are estimated at \$(\d+\.\d\d) at the least", reason)
    assert found is not None, reason
    least = float(found[1])
    assert "estimated" in refused(cloud, text.replace("USD", str(round(least - 0.02, 2))), "jobs/second.yaml")
    assert upload(cloud, text.replace("USD", str(round(least + 0.02, 2))))["state"] == "Pending"


def test_a_job_that_may_end_early_is_estimated_at_one_epoch(cloud):
    cloud.put("datasets/papers/edges.csv", "a,b\n")
    put_graph(cloud, GRAPH, num_nodes=2_000_000_000, num_edges=32_000_000_000)
    text = f"dataset: {GRAPH}\ntraining: {{use_early_stop: true}}\nbudget: {{max_cost_usd: 0.1}}\n"
    assert upload(cloud, text)["state"] == "Pending"


def test_in_another_region_the_status_says_whose_prices_are_meant(cloud, monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")  # where the world is
    (note,) = cloud.read(f"runs/{upload(cloud)['job_id']}/status.json")["notes"]
    assert "prices of us-east-1" in note
