"""A wrong configuration is refused before anything runs."""

from pathlib import Path

import msgspec
import pytest

from common.errors import SpecError
from local_cloud.lambda_service.settings import Faults, FunctionConfig, ServiceConfig, checked, read_config


def function(name: str = "f", *, environment: dict[str, str] | None = None, memory_mb: int = 128) -> FunctionConfig:
    root = str(Path(__file__).parent)
    return FunctionConfig(
        name=name, handler="handlers.echo", task_root=root, memory_mb=memory_mb, environment=environment or {}
    )


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (ServiceConfig(functions=(function(), function())), "two functions are named 'f'"),
        (ServiceConfig(functions=(function("a b"),)), "functions[0].name"),
        (ServiceConfig(functions=(function(memory_mb=100),)), "`int` >= 128"),
        (ServiceConfig(functions=(function(environment={"AWS_LAMBDA_X": ""}),)), "function 'f' sets AWS_LAMBDA_X"),
        (ServiceConfig(functions=(function(environment={"_HANDLER": ""}),)), "Lambda sets these itself"),
        (ServiceConfig(functions=(), concurrency=0), "`int` >= 1"),
        (ServiceConfig(functions=(), faults=Faults(crash_probability=2.0)), "crash_probability"),
        (
            ServiceConfig(functions=(FunctionConfig(name="f", handler="a.b", task_root="no/such/folder"),)),
            "function 'f' has no folder no/such/folder",
        ),
    ],
)
def test_what_is_refused(config: ServiceConfig, told: str):
    with pytest.raises(SpecError) as refused:
        checked(config)
    assert told in str(refused.value)


def test_a_file_holds_the_same(tmp_path: Path):
    config = ServiceConfig(functions=(function(environment={"A": "b"}),), concurrency=3, faults=Faults(seed=5))
    (tmp_path / "lambda.json").write_bytes(msgspec.json.encode(config))
    assert read_config(tmp_path / "lambda.json") == config


@pytest.mark.parametrize("content", [b"", b"{", b'{"functions": 3}', b"\xff\xfe"])
def test_a_file_that_is_none(tmp_path: Path, content: bytes):
    (tmp_path / "lambda.json").write_bytes(content)
    with pytest.raises(SpecError, match="is not a configuration of the local Lambda service"):
        read_config(tmp_path / "lambda.json")
