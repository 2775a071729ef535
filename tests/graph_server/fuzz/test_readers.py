"""Wounded datasets of every format, in a process of their own: an answer in our words, in time, in little memory.

`make test` reads the kept corpus, which worker.py has made. By hand, three minutes a format, findings below FOLDER:

    DORYLUS_FUZZ_SECONDS=180 python -m pytest -n0 -m cluster --basetemp FOLDER tests/graph_server/fuzz
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from common import plugins
from graph_server.ingest.detect import FORMATS
from tests.graph_server.fuzz.seeds import NAMES, corpus
from tests.graph_server.fuzz.worker import read_once, write

SECONDS = float(os.environ.get("DORYLUS_FUZZ_SECONDS") or 10)
WORKER = "tests.graph_server.fuzz.worker"


def run(name: str, seconds: float, number: int, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", WORKER, name, str(seconds), str(number), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_kept_corpus(name: str, tmp_path: Path):
    """Each of its inputs is answered as ever: read, or refused in our words."""
    module, inputs = plugins.load(FORMATS, name), corpus(name)
    assert inputs
    for number, seed in enumerate(inputs):
        write(seed, tmp_path / str(number))
        assert read_once(module, seed, tmp_path / str(number), Random(number))


@pytest.mark.cluster
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of address space is Linux's")
@pytest.mark.parametrize("name", NAMES)
def test_new_wounds(name: str, tmp_path: Path):
    """After a finding a new process goes on with other wounds, until the time is up."""
    end, findings = time.monotonic() + SECONDS, []
    while (left := end - time.monotonic()) > 0:
        number = int.from_bytes(os.urandom(4))
        done = run(name, left, number, tmp_path)
        if done.returncode:
            kept = tmp_path / f"finding-{len(findings)}"
            shutil.copytree(tmp_path / "input", kept / "input")
            (kept / "why.txt").write_text(done.stderr, encoding="utf-8")
            findings.append(f"{kept}: {done.stderr.strip().splitlines()[-1:]}")
        else:
            told = json.loads(done.stdout)
            (tmp_path / "told.json").write_text(done.stdout, encoding="utf-8")
            assert told["inputs"] > len(told["answers"]) > 1
        shutil.rmtree(tmp_path / "example", ignore_errors=True)
    assert not findings
