"""What servers install, without a network: for each architecture there is a wheel of every dependency, as locked."""

import re
import subprocess
from pathlib import Path

import pytest

from infra.assets import ARCHITECTURES
from infra.bundle import platform, wanted_wheels
from infra.closure import ROOT
from infra.context import Architecture

pytestmark = pytest.mark.cluster
UV = str(ROOT / ".uv" / "bin" / "uv")


def uv(*words: str, told: str = "") -> subprocess.CompletedProcess[str]:
    command = [UV, "pip", *words]
    return subprocess.run(command, cwd=ROOT, input=told, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def registry() -> None:
    """Skips where none can be asked, even for what is certainly there."""
    asked = uv("compile", "--refresh", "-", told="msgspec\n")
    if asked.returncode:
        pytest.skip(f"no registry of packages can be asked: {asked.stderr[-200:]}")


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_locked_dependency_has_a_wheel(architecture: Architecture, tmp_path: Path):
    wanted = wanted_wheels(tmp_path, architecture)
    pins = re.findall(r"^([\w.-]+==[^ ;\\]+)", wanted.read_text(encoding="utf-8"), re.MULTILINE)
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert {"numpy", "numba", "pyzmq", "boto3"} <= {pin.partition("==")[0] for pin in pins}
    assert [pin for pin in pins if pin not in locked] == []
    exact = ["--require-hashes", "--no-deps", "--target", str(tmp_path / "there"), "--requirement", str(wanted)]
    asked = uv("install", "--dry-run", *platform(architecture), *exact)
    assert asked.returncode == 0, asked.stderr
    assert f"Would install {len(pins)} packages" in asked.stderr
