"""The CDK's own command line, at the pinned version, against moto: synth, bootstrap, deploy, and what there is then."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import boto3
import pytest
from moto.server import ThreadedMotoServer

from infra.closure import ROOT
from tests.infra.on_moto import left_out, not_made, without_ipv6
from tests.lambda_functions.job_cloud import speak_as_nobody

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore:Tried to parse:UserWarning"),  # of each type that moto does not make
]
NAME = "small"


def cdk(*words: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infra.cdk", *words]
    quiet = {"CDK_DISABLE_CLI_TELEMETRY": "true", "CI": "true", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **quiet}, capture_output=True, text=True, timeout=seconds, check=False
    )


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `cdk synth` has written. Skips where the command line cannot be fetched."""
    fetched = cdk("--version")
    if fetched.returncode:
        pytest.skip(f"the CDK's command line cannot be fetched: {fetched.stderr[-200:]}")
    folder = tmp_path_factory.mktemp("cdk")
    app = f"{sys.executable} -m tests.integration.small_app {folder / 'assets'}"
    out = folder / "out"
    plain = ("--quiet", "--version-reporting", "false", "--build", ":", "--output", str(out))
    done = cdk("synth", *plain, "--app", app, "-c", f"dorylus:name={NAME}")
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    speak_as_nobody(monkeypatch)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://localhost:{port}")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        urlopen(Request(f"http://localhost:{port}/moto-api/reset", method="POST")).close()
        yield
    finally:
        server.stop()


def test_a_deployment_from_the_command_line(assembly: Path, aws: None):
    written = assembly / f"{NAME}.template.json"
    template = json.loads(written.read_text(encoding="utf-8"))
    written.write_text(json.dumps(without_ipv6(template)), encoding="utf-8")
    done = cdk("bootstrap", "aws://123456789012/us-east-1", "--app", str(assembly), "--build", ":")
    assert done.returncode == 0, done.stderr
    done = cdk("deploy", NAME, "--app", str(assembly), "--build", ":", "--require-approval", "never")
    assert done.returncode == 0, done.stderr
    (stack,) = boto3.client("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    assert not_made(template, NAME) == left_out()
    functions = {one["FunctionName"] for one in boto3.client("lambda").list_functions()["Functions"]}
    assert {
        f"{NAME}-{name}" for name in ("tensor-0", "tensor-2", "job-trigger", "launch-servers", "sweep")
    } <= functions
    assert boto3.client("dynamodb").list_tables()["TableNames"] == [f"{NAME}-jobs", f"{NAME}-members"]
