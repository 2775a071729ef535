"""The scripts of an instance, run for real: bash, curl, the AWS command line against moto, a metadata service of ours.

Only `systemctl` is another: it writes down what it was asked, for a test must not power off anything.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import boto3
import pytest
from moto.server import ThreadedMotoServer

from infra.closure import ROOT
from tests.lambda_functions.job_cloud import JobCloud, deploy, speak_as_nobody

SCRIPTS = ROOT / "infra" / "server"


class Metadata(BaseHTTPRequestHandler):
    """IMDSv2: a token first. There is a tag, and from the third question on a spot notice."""

    questions = 0

    def do_PUT(self):
        self._answer(200, "token")

    def do_GET(self):
        is_ours = self.headers.get("X-aws-ec2-metadata-token") == "token"
        known = {"/latest/meta-data/tags/instance/dorylus-job": "job-1"}
        if self.path == "/latest/meta-data/spot/instance-action":
            Metadata.questions += 1
            if Metadata.questions > 2:
                known[self.path] = '{"action": "terminate"}'
        if is_ours and self.path in known:
            self._answer(200, known[self.path])
        else:
            self._answer(404 if is_ours else 401, "")

    def _answer(self, status: int, words: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(words.encode())

    def log_message(self, *words: object) -> None:
        pass


class Instance:
    def __init__(self, cloud: JobCloud, folder: Path, url: str) -> None:
        self.cloud, self.folder, self.url = cloud, folder, url
        self.asked = folder / "systemctl.txt"
        self.last_beat = folder / "last_beat"
        tools = folder / "bin"
        tools.mkdir()
        (tools / "systemctl").write_text(f'#!/bin/bash\necho "$@" >> {self.asked}\n', encoding="utf-8")
        (tools / "systemctl").chmod(0o755)
        self.path = f"{SCRIPTS}:{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(self, *command: str) -> str:
        environment = {
            **os.environ,
            "PATH": self.path,
            "DORYLUS_METADATA_URL": self.url,
            "DORYLUS_LAST_BEAT": str(self.last_beat),
            "DORYLUS_POLL_SECONDS": "0.1",
        }
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def is_off(self) -> bool:
        return self.asked.exists() and "poweroff" in self.asked.read_text(encoding="utf-8")


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Instance]:
    speak_as_nobody(monkeypatch)
    aws = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    aws.start()
    metadata = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = Thread(target=metadata.serve_forever)
    thread.start()
    try:
        _, port = aws.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        urlopen(Request(f"http://127.0.0.1:{port}/moto-api/reset", method="POST")).close()
        made = Instance(deploy(monkeypatch), tmp_path, f"http://127.0.0.1:{metadata.server_port}")
        made.last_beat.write_text(str(int(time.time())), encoding="utf-8")
        yield made
    finally:
        metadata.shutdown()
        metadata.server_close()
        thread.join()
        aws.stop()


def ago(seconds: int) -> int:
    return int(time.time()) - seconds


def test_the_switch_holds_while_the_job_beats(instance):
    instance.last_beat.write_text(str(ago(5000)), encoding="utf-8")
    instance.cloud.record(beat=ago(30))
    instance.run("dead_man")
    assert not instance.is_off()
    assert int(instance.last_beat.read_text(encoding="utf-8")) == instance.cloud.jobs.get("job-1")["beat"]


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "Completed", "beat": 4_000_000_000},
        {"state": "Failed", "beat": 4_000_000_000},
        {"beat": 4_000_000_000, "deadline": 1000},
    ],
    ids=["completed", "failed", "its time is over"],
)
def test_the_switch_powers_off_when_the_job_is_over(instance, changes):
    instance.cloud.record(**changes)
    instance.run("dead_man")
    assert instance.is_off()


def test_the_switch_powers_off_without_a_beat(instance):
    instance.last_beat.write_text(str(ago(601)), encoding="utf-8")
    instance.cloud.record(beat=ago(700))
    instance.run("dead_man")
    assert instance.is_off()


def test_the_switch_powers_off_when_the_job_is_not_known(instance):
    instance.run("dead_man")
    assert instance.is_off()


def test_a_table_that_cannot_be_read_is_forgiven_for_ten_minutes(instance, monkeypatch):
    monkeypatch.setenv("DORYLUS_JOBS_TABLE", "no-such-table")
    instance.last_beat.write_text(str(ago(300)), encoding="utf-8")
    instance.run("dead_man")
    assert not instance.is_off()
    instance.last_beat.write_text(str(ago(601)), encoding="utf-8")
    instance.run("dead_man")
    assert instance.is_off()


def test_words_reach_the_record_whatever_is_in_them(instance):
    instance.cloud.record()
    instance.run("tell_record", "boot_error", "it said: \"no 'space' left\" & 50 % of ü")
    assert instance.cloud.jobs.get("job-1")["boot_error"] == "it said: \"no 'space' left\" & 50 % of ü"


def test_words_make_no_record(instance):
    with pytest.raises(AssertionError, match="ConditionalCheckFailed"):
        instance.run("tell_record", "boot_error", "x")
    assert boto3.resource("dynamodb").Table("small-jobs").scan()["Items"] == []


def test_a_spot_notice_ends_the_server_in_good_order(instance):
    instance.cloud.record()
    instance.run("spot_notice")
    assert Metadata.questions == 3
    assert instance.asked.read_text(encoding="utf-8").split() == ["stop", "dorylus-server.service"]
    assert instance.cloud.jobs.get("job-1")["spot_notice"] == '{"action": "terminate"}'


@pytest.mark.parametrize("script", ["install.sh", "metadata", "tell_record", "dead_man", "spot_notice"])
def test_scripts_are_bash_and_executable(script):
    assert os.access(SCRIPTS / script, os.X_OK)
    subprocess.run(["bash", "-n", str(SCRIPTS / script)], check=True)
