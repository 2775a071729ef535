"""What the servers of a job ask of AWS: each request of theirs as it comes in, as the call that boto3 made it from.

moto enforces no policy; servers are known by their access key, which is nobody else's.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from tests.infra.calls import Call, Calls

SERVERS = "servers"
"""Among the callers; and their access key."""
SERVICES = {"dynamodb": "dynamodb", "ssm": "ssm", "states": "stepfunctions"}
TELLING = ("TableName", "Name")
"""What a policy may ask about; all else is another one each time."""
BY_METHOD = {
    "HEAD": "HeadObject",
    "GET": "GetObject",
    "PUT": "PutObject",
    "POST": "UploadPart",
    "DELETE": "DeleteObject",
}


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch, calls: Calls, billed: Counter[str]) -> Iterator[None]:
    """Into `calls`, while the block lasts; into `billed` how many to S3, by what AWS bills them as."""
    serve = DomainDispatcherApplication.__call__

    def tapped(application: Any, environ: dict[str, Any], start_response: Any) -> Any:
        signed = re.search(rf"Credential={SERVERS}/\d+/[\w-]+/(\w+)/", environ.get("HTTP_AUTHORIZATION", ""))
        if signed:
            call = _call(signed[1], environ)
            calls[SERVERS].add(call)
            billed[_billed_as(call, environ["REQUEST_METHOD"])] += 1
        return serve(application, environ, start_response)

    with monkeypatch.context() as patch:
        patch.setattr(DomainDispatcherApplication, "__call__", tapped)
        yield


def _billed_as(call: Call, method: str) -> str:
    if call.service != "s3" or call.operation.startswith("Delete"):
        return "nothing"
    return "reads" if method == "HEAD" or call.operation == "GetObject" else "writes"


def _call(service: str, environ: dict[str, Any]) -> Call:
    if service == "s3":
        return _s3(environ)
    asked = json.loads(_body(environ))
    operation = environ["HTTP_X_AMZ_TARGET"].rpartition(".")[2]
    return Call.of(SERVICES[service], operation, {name: asked[name] for name in TELLING if name in asked})


def _s3(environ: dict[str, Any]) -> Call:
    asked = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    bucket, _, key = environ["PATH_INFO"].lstrip("/").partition("/")
    if key:
        return Call.of("s3", BY_METHOD[environ["REQUEST_METHOD"]], {"Bucket": bucket, "Key": key, **_version(asked)})
    if "delete" in asked:
        keys = [unquote(found) for found in re.findall(r"<Key>(.*?)</Key>", _body(environ).decode())]
        return Call.of("s3", "DeleteObjects", {"Bucket": bucket, "Keys": keys})
    return Call.of("s3", "ListObjectsV2", {"Bucket": bucket, "Prefix": asked.get("prefix", [""])[0]})


def _version(asked: Mapping[str, list[str]]) -> dict[str, str]:
    return {"VersionId": asked["versionId"][0]} if "versionId" in asked else {}


def _body(environ: dict[str, Any]) -> bytes:
    """It stays there for moto."""
    data: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(data)
    return data
