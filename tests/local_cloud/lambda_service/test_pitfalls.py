"""Four traps a local Lambda falls into, each a test.

(a) the caller has its answer before the worker asks for more: a call right after it must find that worker
(b) a Runtime API address has no path, so every worker has a port of its own
(c) a worker killed in the middle must not leave its caller waiting
(d) between invocations a function stands still, and goes on with its connections afterwards
"""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from local_cloud.lambda_service.settings import Faults, ServiceConfig
from tests.local_cloud.lambda_service.meeting import Meeting
from tests.local_cloud.lambda_service.running import Running, function, running


@pytest.fixture(scope="module")
def lonely(runtime: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One place only, so that any worker started for nothing would be seen, and any call too early is throttled."""
    functions = (function("count"), function("answer_in_a_thread"), function("meet"))
    config = ServiceConfig(functions=functions, concurrency=1, runtime=runtime)
    with running(tmp_path_factory.mktemp("lonely"), config) as service:
        yield service


def test_a_call_after_call_finds_the_same_worker_and_is_never_throttled(lonely: Running):
    answers = [lonely.invoke("count").body for _ in range(100)]
    assert [answer["count"] for answer in answers] == list(range(1, 101))
    assert len({answer["pid"] for answer in answers}) == 1
    meter = lonely.meter()["functions"]["count"]
    assert (meter["cold_starts"], meter["throttles"], meter["requests"]) == (1, 0, 100)


def test_b_each_worker_has_its_own_runtime_api(service: Running, meeting: Meeting):
    with ThreadPoolExecutor(3) as callers:
        calls = [callers.submit(service.invoke, "meet", meeting.event) for _ in range(3)]
        for met in [meeting.meet() for _ in range(3)]:
            met.let_go()
        addresses = {call.result().body["api"] for call in calls}
    assert len(addresses) == 3
    assert not [address for address in addresses if "/" in address]


def test_c_a_worker_killed_in_the_middle_ends_its_call(service: Running, meeting: Meeting):
    with ThreadPoolExecutor(1) as caller:
        call = caller.submit(service.invoke, "meet", meeting.event)
        os.kill(meeting.meet().pid, signal.SIGKILL)
        reply = call.result()
    assert (reply.error, reply.body["errorType"]) == ("Unhandled", "Runtime.ExitError")
    assert reply.body["errorMessage"].endswith("Runtime exited with error: signal: killed")


def test_c_an_injected_crash_ends_its_call(lonely: Running, meeting: Meeting):
    lonely.set_faults(Faults(crash_probability=1.0, crash_within_seconds=0.0))
    reply = lonely.invoke("meet", meeting.event)
    assert (reply.error, reply.body["errorType"]) == ("Unhandled", "Runtime.ExitError")
    lonely.set_faults(Faults())
    assert lonely.meter()["functions"]["meet"]["errors"] == 1


def test_d_an_idle_worker_stands_still_and_keeps_its_connections(lonely: Running, meeting: Meeting):
    pid = lonely.invoke("answer_in_a_thread", meeting.event).body
    met = meeting.meet()
    unheard = met.last_byte_before_silence()
    with ThreadPoolExecutor(1) as caller:
        call = caller.submit(lonely.invoke, "answer_in_a_thread", {**meeting.event, "until_heard": True})
        assert met.hears(unheard)
        assert call.result().body == pid


def test_d_without_freezing_its_threads_go_on(tmp_path: Path, meeting: Meeting):
    config = ServiceConfig(functions=(function("answer_in_a_thread"),), freeze_idle=False)
    with running(tmp_path, config) as service:
        service.invoke("answer_in_a_thread", meeting.event)
        assert meeting.meet().answers(b"1")
