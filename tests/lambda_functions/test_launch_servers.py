"""All servers of a job in one zone, or none and AWS's words."""

import time

import boto3
import pytest
from botocore.exceptions import ClientError

from common.cloud_names import Phase
from lambda_functions.fleet import Attempt, Launched, Wanted, fleet_request, launched
from lambda_functions.launch_servers import NoCapacity, StopRequested, TimeIsUp, TooManyRestarts, handler, launch
from lambda_functions.stack_settings import Place, Template
from tests.lambda_functions.job_cloud import ZONES

TRAIN = {"job_id": "job-1", "phase": "train", "generation": 0, "lost": {}}
LOST = {"Error": "PeerLost", "Cause": "graph1 does not answer"}


def attempts(*zones: str) -> list[Attempt]:
    return [Attempt(Place(zone, f"subnet-{zone}", "f"), "c7g.large", Template("lt-1", "3")) for zone in zones]


def wanted(num_servers: int = 3, *, spot: bool = False) -> Wanted:
    return Wanted("small", "job-1", Phase.TRAIN, 1, num_servers, spot)


def test_a_request_is_all_or_nothing_in_one_zone():
    request = fleet_request(wanted(), attempts("us-east-1a")[0])
    assert request["Type"] == "instant"
    assert request["TargetCapacitySpecification"]["TotalTargetCapacity"] == 3
    assert request["OnDemandOptions"] == {
        "SingleInstanceType": True,
        "SingleAvailabilityZone": True,
        "MinTargetCapacity": 3,
    }
    assert "OnDemandOptions" not in fleet_request(wanted(spot=True), attempts("us-east-1a")[0])


def test_the_same_wish_has_the_same_token_and_another_has_another():
    one, other = attempts("us-east-1a", "us-east-1b")
    assert fleet_request(wanted(), one)["ClientToken"] == fleet_request(wanted(), one)["ClientToken"]
    assert fleet_request(wanted(), one)["ClientToken"] != fleet_request(wanted(), other)["ClientToken"]
    assert len(fleet_request(wanted(), one)["ClientToken"]) <= 64


def test_an_answer_is_counted_and_says_what_aws_says():
    answer = {
        "Instances": [{"InstanceIds": ["i-1", "i-2"]}, {"InstanceIds": ["i-3"]}],
        "Errors": [{"ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "no c7g"}] * 2,
    }
    assert launched(answer) == Launched(("i-1", "i-2", "i-3"), ("InsufficientInstanceCapacity: no c7g",))
    assert launched({}) == Launched((), ())


def test_the_whole_fleet_is_launched_and_recorded(cloud):
    cloud.record()
    answer = handler(TRAIN, None)
    assert answer["needed"]
    assert answer["generation"] == 1
    assert answer["heartbeat"] == 600
    tags = list(cloud.instances().values())
    assert len(tags) == 3
    assert all(one["dorylus-job"] == "job-1" and one["dorylus-generation"] == "1" for one in tags)
    record = cloud.jobs.get("job-1")
    assert (record["state"], record["zone"], record["function"]) == ("Starting", ZONES[0], "small-tensor-0")
    assert record["beat"] >= time.time() - 60


def test_a_step_that_is_tried_again_keeps_its_own_fleet(cloud):
    """EC2 would answer with the same fleet, by the client token; moto knows none and launches another."""
    cloud.record()
    handler(TRAIN, None)
    first = set(cloud.instances())
    handler(TRAIN, None)
    assert first <= set(cloud.instances())


def test_the_next_generation_terminates_the_last_one(cloud):
    cloud.record()
    handler(TRAIN, None)
    first = set(cloud.instances())
    answer = handler({**TRAIN, "generation": 1, "lost": LOST}, None)
    assert answer["generation"] == 2
    assert len(cloud.instances()) == 3
    assert not first & set(cloud.instances())


def test_restarts_end(cloud):
    cloud.record(max_restarts=1)
    with pytest.raises(TooManyRestarts, match="lost servers 2 times(.|\n)*graph1 does not answer; max_restarts is 1"):
        handler({**TRAIN, "generation": 2, "lost": LOST}, None)
    assert not cloud.instances()


def test_a_cutter_is_one_server_and_only_where_there_is_no_graph_folder(cloud):
    cloud.record(graph="graphs/abc.dorylus/", spot=True)
    cut = {"job_id": "job-1", "phase": "cut", "generation": 0}
    assert handler(cut, None)["needed"]
    assert [one["dorylus-phase"] for one in cloud.instances().values()] == ["cut"]
    assert handler(cut, None)["generation"] == 0
    cloud.put("graphs/abc.dorylus/manifest.json", "{}")
    assert not handler(cut, None)["needed"]


def test_training_terminates_the_cutter(cloud):
    cloud.record(graph="graphs/abc.dorylus/")
    handler({"job_id": "job-1", "phase": "cut", "generation": 0}, None)
    handler(TRAIN, None)
    assert {one["dorylus-phase"] for one in cloud.instances().values()} == {"train"}


def test_a_bundled_dataset_needs_no_cutter(cloud):
    cloud.record(graph="")
    assert not handler({"job_id": "job-1", "phase": "cut", "generation": 0}, None)["needed"]
    assert not cloud.instances()


def test_a_stopped_job_launches_nothing(cloud):
    cloud.record(stop=True)
    with pytest.raises(StopRequested, match="job job-1 was stopped before its servers were there"):
        handler(TRAIN, None)
    assert not cloud.instances()


def test_a_job_that_ended_meanwhile_keeps_no_servers(cloud):
    cloud.record(state="Stopped")
    with pytest.raises(StopRequested, match="was over before"):
        handler(TRAIN, None)
    assert not cloud.instances()


def test_a_heartbeat_is_shorter_than_what_is_left(cloud):
    cloud.record(deadline=int(time.time()) + 300)
    answer = handler(TRAIN, None)
    assert 200 < answer["heartbeat"] < answer["seconds"] <= 300


def test_a_job_has_its_time(cloud):
    cloud.record(created=100, deadline=160)
    with pytest.raises(TimeIsUp, match="it may run 60 seconds"):
        handler(TRAIN, None)


class Ec2:
    """Answers CreateFleet as told, and remembers what was terminated: moto never refuses a fleet."""

    def __init__(self, *answers):
        self.answers, self.zones, self.terminated = list(answers), [], []

    def create_fleet(self, **request):
        self.zones.append(request["LaunchTemplateConfigs"][0]["Overrides"][0]["SubnetId"])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def terminate_instances(self, InstanceIds):
        self.terminated += InstanceIds


SHORT = {
    "Instances": [{"InstanceIds": ["i-1", "i-2"]}],
    "Errors": [{"ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "not enough c7g.large"}],
}
WHOLE = {"Instances": [{"InstanceIds": ["i-7", "i-8", "i-9"]}]}
QUOTA = ClientError({"Error": {"Code": "VcpuLimitExceeded", "Message": "you have 5 vCPUs"}}, "CreateFleet")


@pytest.fixture
def ec2(monkeypatch):
    def answering(*answers) -> Ec2:
        made = Ec2(*answers)
        monkeypatch.setattr(boto3, "client", lambda name: made)
        return made

    return answering


def test_a_fleet_short_of_one_server_is_terminated_and_the_next_zone_is_tried(ec2):
    client = ec2(SHORT, WHOLE)
    attempt, servers = launch(wanted(), attempts("us-east-1a", "us-east-1b"))
    assert client.terminated == ["i-1", "i-2"]
    assert attempt.place.zone == "us-east-1b"
    assert servers.instances == ("i-7", "i-8", "i-9")


def test_when_no_zone_has_them_the_error_is_what_aws_said_of_each(ec2):
    client = ec2(SHORT, QUOTA)
    with pytest.raises(NoCapacity) as error:
        launch(wanted(), attempts("us-east-1a", "us-east-1b"))
    assert "c7g.large in us-east-1a: InsufficientInstanceCapacity: not enough c7g.large" in error.value.why
    assert "c7g.large in us-east-1b: An error occurred (VcpuLimitExceeded)" in error.value.why
    assert client.terminated == ["i-1", "i-2"]
