"""An invocation lives as long as its lease: whoever waits for it waits long enough, and starts it once."""

import asyncio
import time
from pathlib import Path

import pytest

from common.role_start import FunctionPlace
from common.wire import messages
from common.wire.admission import Admission
from common.wire.channel import InMemoryNetwork, Reply
from common.wire.clients import ParameterClient
from common.wire.keys import Token, new_token
from common.wire.ticket import Ticket
from graph_server import function_invoker
from graph_server.backends.base import Invocation
from graph_server.function_invoker import FunctionInvoker
from local_cloud.lambda_service.settings import Faults, ServiceConfig
from tests.local_cloud.lambda_service.running import Running, function, running

FUNCTIONS = (function("stay", timeout_seconds=120), function("fail"), function("leave"))
LONG = 180


class Parameters:
    """Notes what is admitted and expelled."""

    def __init__(self) -> None:
        self.heard: list[messages.AnyMessage] = []
        self.client = ParameterClient(self._joined(), num_parameter_servers=2)

    def _joined(self):
        network = InMemoryNetwork()
        for number in range(2):
            network.join(f"parameter{number}", self.answer)
        return network.join("graph0", self.answer)

    async def answer(self, peer: str, message: messages.AnyMessage, buffers: list) -> Reply:
        self.heard.append(message)
        return messages.Done(), ()


def invoke(
    service: Running,
    name: str,
    *,
    stays: float = 0.0,
    lease_seconds: float = 240.0,
    token: Token | None = None,
    parameters: Parameters | None = None,
) -> Invocation:
    """`stays`: how long the function takes."""
    admission, credentials = Admission(), token or new_token()

    def ticket(lease: int) -> Ticket:
        return Ticket(
            job_id="test",
            generation=1,
            name=f"lambda{lease}",
            lease=lease,
            graph_server="graph0",
            addresses={},
            credentials=credentials,
            num_parameter_servers=2,
            slots=2,
            seconds=stays,
        )

    async def run() -> Invocation:
        place = FunctionPlace(name, "us-east-1", service.url, 16)
        invoker = FunctionInvoker(
            place,
            ticket,
            lease_seconds=lease_seconds,
            admission=admission,
            parameters=(parameters or Parameters()).client,
        )
        async with asyncio.timeout(LONG), invoker:
            ended = await invoker.invoke(3)
        assert admission.name(credentials.proof) is None, "it may speak no longer"
        return ended

    return asyncio.run(run())


def test_a_lease_longer_than_it_should_be_is_waited_for_and_started_once(tmp_path: Path):
    with running(tmp_path, ServiceConfig(functions=FUNCTIONS)) as service:
        assert invoke(service, "stay", stays=3.0, lease_seconds=0.1) is Invocation.SERVED
        assert service.meter()["requests"] == 1


def test_one_that_is_given_up_is_lost_and_not_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(function_invoker, "READ_SECONDS_MORE", 0)
    with running(tmp_path, ServiceConfig(functions=FUNCTIONS)) as service:
        assert invoke(service, "stay", stays=3.0, lease_seconds=1.0) is Invocation.LOST
        assert invoke(service, "stay", stays=0.0, lease_seconds=20.0) is Invocation.SERVED
        deadline = time.monotonic() + LONG
        while service.meter()["requests"] < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert service.meter()["requests"] == 2


@pytest.mark.cluster
def test_a_lease_held_for_ninety_seconds_is_started_once(tmp_path: Path):
    """Longer than a client of AWS waits by itself, after which it would start it again."""
    with running(tmp_path, ServiceConfig(functions=FUNCTIONS)) as service:
        assert invoke(service, "stay", stays=90.0) is Invocation.SERVED
        assert service.meter()["requests"] == 1


def test_one_above_the_concurrency_is_throttled_and_not_tried_again(tmp_path: Path):
    config = ServiceConfig(functions=FUNCTIONS, faults=Faults(throttle_probability=1.0))
    with running(tmp_path, config) as service:
        assert invoke(service, "stay") is Invocation.THROTTLED
        assert (service.meter()["requests"], service.meter()["throttles"]) == (0, 1)


@pytest.mark.parametrize("name", ["fail", "leave", "there_is_none"])
def test_one_that_fails_or_cannot_be_reached_is_lost_and_says_why(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Without the secret it was given."""
    token = new_token()
    with running(tmp_path, ServiceConfig(functions=FUNCTIONS)) as service:
        assert invoke(service, name, token=token) is Invocation.LOST
    said = {"fail": "KeyError", "leave": "KeyError", "there_is_none": "Function not found"}[name]
    assert "lease 3 of graph0 is lost: " in caplog.text
    assert said in caplog.text
    assert token.secret not in caplog.text


def test_parameter_servers_admit_it_before_and_expel_it_after(tmp_path: Path):
    parameters, token = Parameters(), new_token()
    with running(tmp_path, ServiceConfig(functions=FUNCTIONS)) as service:
        invoke(service, "stay", token=token, parameters=parameters)
    admit, expel = messages.Admit(1, "lambda3", token.proof), messages.Expel(1, "lambda3")
    assert parameters.heard == [admit, admit, expel, expel]
