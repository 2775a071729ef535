"""What the servers of a job ask of AWS: each request of theirs as it comes in, by the action that a policy would name.

moto enforces no policy; servers are known by their access key, which is nobody else's.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

SERVERS_KEY = "servers"
PREFIXES = {"dynamodb": "dynamodb", "ssm": "ssm", "states": "states"}


@dataclass(frozen=True)
class Call:
    """what: the key or prefix of a bucket; empty elsewhere."""

    action: str
    what: str = ""


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[Call]]:
    calls: set[Call] = set()
    serve = DomainDispatcherApplication.__call__

    def tapped(application: Any, environ: dict[str, Any], start_response: Any) -> Any:
        signed = re.search(rf"Credential={SERVERS_KEY}/\d+/[\w-]+/(\w+)/", environ.get("HTTP_AUTHORIZATION", ""))
        if signed:
            calls.add(_call(signed[1], environ))
        return serve(application, environ, start_response)

    with monkeypatch.context() as patch:
        patch.setattr(DomainDispatcherApplication, "__call__", tapped)
        yield calls


def _call(service: str, environ: Mapping[str, Any]) -> Call:
    if service != "s3":
        return Call(f"{PREFIXES[service]}:{environ['HTTP_X_AMZ_TARGET'].rpartition('.')[2]}")
    method, asked = environ["REQUEST_METHOD"], parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    _, _, key = environ["PATH_INFO"].lstrip("/").partition("/")
    if key:
        verb = {"HEAD": "Get", "GET": "Get", "PUT": "Put", "POST": "Put", "DELETE": "Delete"}[method]
        return Call(f"s3:{verb}Object", key)
    if "delete" in asked:
        return Call("s3:DeleteObject")
    return Call("s3:ListBucket", asked.get("prefix", [""])[0])
