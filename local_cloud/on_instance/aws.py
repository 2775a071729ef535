"""AWS as an instance asks it: one client per service, and items of DynamoDB's tables as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore.config import Config

Plain = str | int | bool


@dataclass(frozen=True)
class Aws:
    """Clients may be used by several threads at once."""

    s3: Any
    dynamodb: Any
    ssm: Any
    states: Any

    @classmethod
    def connect(cls, region: str) -> "Aws":
        session = botocore.session.get_session()
        config = Config(
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=32,
            retries={"mode": "standard", "max_attempts": 5},
        )
        names = ("s3", "dynamodb", "ssm", "stepfunctions")
        return cls(*(session.create_client(name, region_name=region, config=config) for name in names))


def typed(values: Mapping[str, Plain]) -> dict[str, dict[str, Any]]:
    """As DynamoDB wants them."""
    return {name: _typed(value) for name, value in values.items()}


def plain(item: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """As DynamoDB gave them; numbers are whole ones here."""
    return {name: _plain(value) for name, value in item.items()}


def _typed(value: Plain) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"BOOL": value}
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def _plain(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return int(content)
        case "L":
            return [_plain(one) for one in content]
        case _:
            return content


def is_refused(error: Exception) -> bool:
    """A condition did not hold."""
    return code_of(error) == "ConditionalCheckFailedException"


def code_of(error: Exception) -> str:
    return str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))
