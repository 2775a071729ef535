"""The other two clients: aiobotocore, with the settings of the Lambda backend, and the AWS command line."""

import asyncio
import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiobotocore.config
import aiobotocore.session
import pytest

from tests.local_cloud.lambda_service.meeting import Meeting
from tests.local_cloud.lambda_service.running import CREDENTIALS, Running, client_settings


def test_many_calls_at_once_with_aiobotocore(service: Running, meeting: Meeting):
    """Eight are in flight together, so each has its own worker."""

    async def call(client: Any) -> dict[str, Any]:
        answer = await client.invoke(FunctionName="meet", Payload=json.dumps(meeting.event))
        async with answer["Payload"] as body:
            return json.loads(await body.read())

    async def let_all_go() -> None:
        met = [await asyncio.to_thread(meeting.meet) for _ in range(8)]
        for one in met:
            one.let_go()

    async def run() -> list[dict[str, Any]]:
        settings = aiobotocore.config.AioConfig(**client_settings())
        opened = aiobotocore.session.get_session().create_client(
            "lambda", endpoint_url=service.url, config=settings, **CREDENTIALS
        )
        async with opened as client, asyncio.timeout(30):
            *answers, _ = await asyncio.gather(*(call(client) for _ in range(8)), let_all_go())
            with pytest.raises(client.exceptions.ResourceNotFoundException):
                await client.invoke(FunctionName="nobody")
        return answers

    answers = asyncio.run(run())
    assert [answer["word"] for answer in answers] == ["!"] * 8
    assert len({answer["pid"] for answer in answers}) == 8


@pytest.mark.parametrize("runtime", ["pure_python"], indirect=True)
def test_the_aws_command_line(service: Running, tmp_path: Path):
    out = tmp_path / "out.json"
    command = [str(Path(sys.executable).with_name("aws")), "lambda", "invoke", "--endpoint-url", service.url]
    command += ["--function-name", "fail", "--log-type", "Tail", "--payload", '{"what": "waiting"}', str(out)]
    environment = {
        "PATH": os.environ["PATH"],
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "HOME": str(tmp_path),
    }
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    told = json.loads(run.stdout)
    assert (told["StatusCode"], told["FunctionError"], told["ExecutedVersion"]) == (200, "Unhandled", "$LATEST")
    assert "[ERROR] ValueError: cannot bear waiting" in base64.b64decode(told["LogResult"]).decode()
    assert json.loads(out.read_text())["errorMessage"] == "cannot bear waiting"
