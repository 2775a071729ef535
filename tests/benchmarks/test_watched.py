"""Processes that are looked at while they run."""

import sys

import pytest

from benchmarks.watched import environment, run_watched

HOLDS = "import time; held = bytearray(200_000_000); held[::4096] = b'x' * len(held[::4096]); time.sleep(2.5)"
STARTS = f"import subprocess, sys; print('out'); subprocess.run([sys.executable, '-c', {HOLDS!r}])"


def test_the_memory_of_children_counts():
    found = run_watched([sys.executable, "-c", STARTS], environment(), seconds=60)
    assert (found.code, found.stdout, found.why) == (0, "out\n", "")
    assert 200_000_000 < found.peak_bytes < 400_000_000


def test_what_takes_too_long_is_ended():
    found = run_watched(
        [sys.executable, "-c", "input() if 0 else __import__('time').sleep(60)"], environment(), seconds=1
    )
    assert (found.code, found.why) == (None, "took too long")


def test_a_failure_says_why():
    found = run_watched([sys.executable, "-c", "raise ValueError('no such thing')"], environment(), seconds=60)
    assert found.code == 1
    assert found.why == "ValueError: no such thing"


def test_kernels_are_chosen_by_the_run_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "512")
    made = environment({"OMP_NUM_THREADS": "2"})
    assert not {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"} & made.keys()
    assert made["OMP_NUM_THREADS"] == "2"
