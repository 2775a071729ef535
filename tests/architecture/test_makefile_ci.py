"""One gate, said once: .ci/run is `make check`, then `make test`, and the hooks of a commit need no network."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.architecture.tree import ROOT

VERBS = ("setup", "demo", "test", "check", "cluster", "bench", "peers", "rie", "lock", "help")


def commands(script: Path) -> list[str]:
    lines = [line.strip() for line in script.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def test_ci_is_check_then_test():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert commands(script)[-2:] == ["make check", "make test"]
    assert "set -euo pipefail" in commands(script)


def test_make_alone_explains_every_verb():
    # Without the variables of the `make test` that may have started this, which would make it speak as a sub-make.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    shown = subprocess.run(["make"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    assert [line.split()[1] for line in shown.splitlines()] == list(VERBS)


@pytest.mark.parametrize("verb", ["demo", "test"])
def test_the_readme_gives_both_commands(verb):
    assert f"make {verb}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_hooks_are_local():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]
    assert all(hook["entry"].startswith(".venv/bin/") for repo in hooks["repos"] for hook in repo["hooks"])


def test_version_is_in_the_changelog():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
