"""A bucket on this machine: moto's server, spoken to over HTTP as S3."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.request import Request, urlopen

import boto3
import pytest
from moto.server import ThreadedMotoServer

BUCKET = "models"
ACCESS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


@dataclass(frozen=True)
class Bucket:
    endpoint_url: str
    url: str = f"s3://{BUCKET}/runs/mine"

    @property
    def client(self):
        return boto3.client("s3", endpoint_url=self.endpoint_url)

    def names(self) -> list[str]:
        found = self.client.list_objects_v2(Bucket=BUCKET)
        return [entry["Key"] for entry in found.get("Contents", [])]


@contextmanager
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A fresh one, empty; its credentials stand in the environment."""
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        made = Bucket(f"http://{host}:{port}")
        # All servers of a process share what they hold.
        urlopen(Request(f"{made.endpoint_url}/moto-api/reset", method="POST")).close()
        made.client.create_bucket(Bucket=BUCKET)
        yield made
    finally:
        server.stop()
