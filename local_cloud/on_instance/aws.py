"""AWS as an instance asks it: one client per service, and items of DynamoDB's tables as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.config import Config

from common.s3_requests import HOOK, S3Requests

Plain = str | int | bool
_SERIALIZER, _DESERIALIZER = TypeSerializer(), TypeDeserializer()


@dataclass(frozen=True)
class Aws:
    """Clients may be used by several threads at once."""

    s3: Any
    dynamodb: Any
    ssm: Any
    states: Any
    requests: S3Requests
    """To S3, of this process."""

    @classmethod
    def connect(cls, region: str) -> "Aws":
        session, requests = boto3.Session(region_name=region), S3Requests()
        session.events.register(HOOK, requests.heard)
        config = Config(
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=32,
            retries={"mode": "standard", "max_attempts": 5},
        )
        names = ("s3", "dynamodb", "ssm", "stepfunctions")
        return cls(*(session.client(name, config=config) for name in names), requests=requests)


def typed(values: Mapping[str, Plain]) -> dict[str, Any]:
    """As DynamoDB wants them."""
    return {name: _SERIALIZER.serialize(value) for name, value in values.items()}


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """As DynamoDB gave them; its numbers are decimal ones."""
    return {name: _DESERIALIZER.deserialize(value) for name, value in item.items()}


def is_refused(error: Exception) -> bool:
    """A condition did not hold."""
    return code_of(error) == "ConditionalCheckFailedException"


def code_of(error: Exception) -> str:
    return str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))
