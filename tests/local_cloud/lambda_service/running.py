"""The service as its own process, as the launcher starts it, with clients as the backend sets them up."""

import base64
import functools
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import botocore.config
import msgspec

from local_cloud.lambda_service.settings import Faults, FunctionConfig, ServiceConfig

ROOT = Path(__file__).resolve().parents[3]
HANDLERS = Path(__file__).parent
CREDENTIALS = {"aws_access_key_id": "local", "aws_secret_access_key": "local", "region_name": "us-east-1"}
DEADLINE_SECONDS = 20.0


def function(handler: str, *, name: str = "", memory_mb: int = 512, timeout_seconds: float = 20) -> FunctionConfig:
    """Of handlers.py, by the name of the handler."""
    return FunctionConfig(
        name=name or handler,
        handler=f"handlers.{handler}",
        task_root=str(HANDLERS),
        memory_mb=memory_mb,
        timeout_seconds=timeout_seconds,
    )


def client_settings() -> dict[str, Any]:
    """One attempt, a long wait, as many connections as leases: what the Lambda backend uses."""
    return {
        "read_timeout": DEADLINE_SECONDS + 30,
        "retries": {"total_max_attempts": 1},
        "max_pool_connections": 100,
        "tcp_keepalive": True,
    }


@functools.cache
def session() -> boto3.session.Session:
    """It keeps what it read of the services' descriptions."""
    return boto3.session.Session(**CREDENTIALS)


@dataclass(frozen=True)
class Running:
    url: str
    process: subprocess.Popen[bytes]
    client: Any

    def invoke(self, name: str, event: Any = None, **options: Any) -> "Reply":
        payload = json.dumps({} if event is None else event)
        return Reply.of(self.client.invoke(FunctionName=name, Payload=payload, **options))

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=DEADLINE_SECONDS) as answer:
            return json.load(answer)

    def meter(self) -> Any:
        return self.get("/_meter")

    def put_faults(self, faults: bytes) -> bytes:
        request = urllib.request.Request(self.url + "/_faults", data=faults, method="PUT")
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.read()

    def set_faults(self, faults: Faults) -> None:
        self.put_faults(msgspec.json.encode(faults))

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


@dataclass(frozen=True)
class Reply:
    status: int
    error: str | None
    body: Any
    log: str | None

    @staticmethod
    def of(answer: Mapping[str, Any]) -> "Reply":
        body = answer["Payload"].read()
        log = base64.b64decode(answer["LogResult"]).decode() if "LogResult" in answer else None
        return Reply(answer["StatusCode"], answer.get("FunctionError"), json.loads(body) if body else None, log)


@contextmanager
def running(folder: Path, config: ServiceConfig) -> Iterator[Running]:
    file = folder / f"lambda-{os.urandom(4).hex()}.json"
    file.write_bytes(msgspec.json.encode(config))
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "local_cloud.lambda_service", "--config", str(file), "--port-fd", str(write_end)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[write_end])
    os.close(write_end)
    with open(read_end) as told:
        port = told.readline().strip()
    assert port, "the service did not start"
    url = f"http://127.0.0.1:{port}"
    settings = botocore.config.Config(**client_settings())
    client = session().client("lambda", endpoint_url=url, config=settings)
    try:
        yield Running(url, process, client)
    finally:
        client.close()
        process.kill() if process.stdin is None else process.stdin.close()
        process.wait(DEADLINE_SECONDS)
