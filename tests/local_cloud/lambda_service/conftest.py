"""A service for each of the two runtime clients: the same tests must pass with both."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cloud.lambda_service.process_memory import peak_bytes
from local_cloud.lambda_service.settings import FunctionConfig, ServiceConfig
from tests.local_cloud.lambda_service.meeting import Meeting
from tests.local_cloud.lambda_service.running import HANDLERS, Running, function, running

PLAIN = ("echo", "environment", "describe", "fail", "say", "leave", "kill_itself", "large", "no_json", "meet", "count")


BROKEN = {
    "wrong_syntax": "def handler(:\n",
    "raises": "raise KeyError('a setting')\n",
    "leaves": "import os\nos._exit(5)\n",
}


def functions(broken: Path) -> tuple[FunctionConfig, ...]:
    return (
        *(function(handler) for handler in PLAIN),
        function("wait", timeout_seconds=0.3),
        function("grow", memory_mb=128),
        FunctionConfig(name="no_module", handler="nowhere_to_be_found.handler", task_root=str(HANDLERS)),
        FunctionConfig(name="no_handler", handler="handlers.nowhere_to_be_found", task_root=str(HANDLERS)),
        FunctionConfig(name="no_dot", handler="handlers", task_root=str(HANDLERS)),
        *(FunctionConfig(name=name, handler=f"{name}.handler", task_root=str(broken)) for name in BROKEN),
    )


@pytest.fixture(scope="session", params=["awslambdaric", "pure_python"])
def runtime(request: pytest.FixtureRequest) -> str:
    if request.param == "awslambdaric":
        pytest.importorskip("awslambdaric", reason="awslambdaric has no wheel for this system")
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def service(runtime: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("service")
    for name, source in BROKEN.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    with running(folder, ServiceConfig(functions=functions(folder), runtime=runtime)) as service:
        yield service


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    with Meeting() as meeting:
        yield meeting


@pytest.fixture
def peak_is_known() -> None:
    if peak_bytes(os.getpid()) is None:
        pytest.skip("this system does not tell how much memory a process takes, so there is no cap")
