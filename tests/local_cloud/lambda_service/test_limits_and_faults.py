"""Concurrency, the queue of events, idle workers, and bad luck on demand."""

import json
import math
import urllib.error
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from local_cloud.lambda_service.fault_dice import FaultDice
from local_cloud.lambda_service.settings import Faults, ServiceConfig
from tests.local_cloud.lambda_service.meeting import Meeting
from tests.local_cloud.lambda_service.running import Running, function, running

COUNTED = ("requests", "cold_starts", "errors", "throttles")


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Two places, room for two events, workers that do not stay."""
    functions = tuple(function(handler) for handler in ("meet", "echo", "keep_socket", "wait", "describe"))
    config = ServiceConfig(functions=functions, concurrency=2, event_queue=2, idle_seconds=0.2)
    with running(tmp_path_factory.mktemp("narrow"), config) as service:
        yield service


def counts(service: Running) -> Counter[str]:
    bill = service.meter()
    return Counter({name: bill[name] for name in COUNTED})


def test_one_call_more_than_there_are_places_is_throttled(narrow: Running, meeting: Meeting):
    before = counts(narrow)
    with ThreadPoolExecutor(2) as callers:
        calls = [callers.submit(narrow.invoke, "meet", meeting.event) for _ in range(2)]
        met = [meeting.meet(), meeting.meet()]
        with pytest.raises(narrow.client.exceptions.TooManyRequestsException, match="Rate Exceeded") as refused:
            narrow.invoke("echo")
        assert refused.value.response["Reason"] == "ConcurrentInvocationLimitExceeded"
        for one in met:
            one.let_go()
        assert [call.result().error for call in calls] == [None, None]
    assert narrow.invoke("echo", 1).body == 1
    new = counts(narrow) - before
    assert (new["requests"], new["throttles"], new["errors"]) == (3, 1, 0)
    assert narrow.meter()["functions"]["echo"]["throttles"] == 1


def test_events_wait_for_a_place_and_their_queue_is_bounded(narrow: Running, meeting: Meeting):
    def send() -> int:
        event = json.dumps(meeting.event)
        status: int = narrow.client.invoke(FunctionName="meet", InvocationType="Event", Payload=event)["StatusCode"]
        return status

    before = counts(narrow)
    assert [send(), send()] == [202, 202]
    running_now = [meeting.meet(), meeting.meet()]
    assert [send(), send()] == [202, 202]
    with pytest.raises(narrow.client.exceptions.TooManyRequestsException):
        send()
    assert (counts(narrow) - before)["requests"] == 0
    for met in running_now:
        met.let_go()
    later = [meeting.meet(), meeting.meet()]
    assert (counts(narrow) - before)["requests"] == 2
    for met in later:
        met.let_go()
        met.wait_for_its_end()


def test_an_idle_worker_ends(narrow: Running, meeting: Meeting):
    pid = narrow.invoke("keep_socket", meeting.event).body
    met = meeting.meet()
    assert met.pid == pid
    met.wait_for_its_end()
    assert narrow.invoke("keep_socket", meeting.event).body != pid


def test_throttling_on_demand_bills_nothing(narrow: Running):
    before = counts(narrow)
    narrow.set_faults(Faults(throttle_probability=1.0))
    for kind in ("RequestResponse", "Event"):
        with pytest.raises(narrow.client.exceptions.TooManyRequestsException):
            narrow.client.invoke(FunctionName="echo", InvocationType=kind)
    narrow.set_faults(Faults())
    new = counts(narrow) - before
    assert (new["throttles"], new["requests"]) == (2, 0)
    assert narrow.invoke("echo", 2).body == 2


def test_crashes_come_by_the_seed_and_are_billed(narrow: Running):
    faults = Faults(crash_probability=0.4, crash_within_seconds=0.0, seed=3)
    dice = FaultDice(faults)
    expected = [dice.crash_after() is not None for _ in range(6)]
    assert 0 < sum(expected) < 6
    before = counts(narrow)
    narrow.set_faults(faults)
    crashed = [narrow.invoke("wait", {"seconds": 0.02}).error is not None for _ in range(6)]
    narrow.set_faults(Faults())
    new = counts(narrow) - before
    assert crashed == expected
    assert (new["requests"], new["errors"]) == (6, sum(crashed))


def test_the_wait_for_a_cold_start_is_not_billed(narrow: Running):
    narrow.set_faults(Faults(cold_start_seconds=0.5))
    assert narrow.get("/_faults")["cold_start_seconds"] == 0.5
    assert narrow.invoke("describe").error is None
    narrow.set_faults(Faults())
    record = narrow.meter()["records"][-1]
    assert record["cold_start"]
    assert record["billed_ms"] == math.ceil(record["init_ms"] + record["duration_ms"])


def test_faults_that_make_no_sense_are_refused(service: Running):
    with pytest.raises(urllib.error.HTTPError) as refused:
        service.put_faults(b'{"crash_probability": 1.5}')
    with refused.value as answer:
        assert answer.code == 400
        assert "`float` <= 1.0 - at `$.crash_probability`" in answer.read().decode()
    assert service.get("/_faults") == {
        "crash_probability": 0.0,
        "crash_within_seconds": 0.05,
        "throttle_probability": 0.0,
        "cold_start_seconds": 0.0,
        "seed": 0,
    }
