"""What is deployed: everything a function needs, and nothing else."""

import json
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from common.errors import ClusterError
from infra.assets import Assets
from infra.bundle import STEP_MODULES, TENSOR_MODULES, copy_closure, write_known_names
from infra.closure import closure, modules_of
from infra.context import Context
from lambda_functions.known_names import from_folders

TENSOR_DISTRIBUTIONS = {"numpy", "msgspec", "threadpoolctl", "pyzmq"}
TRIGGER_DISTRIBUTIONS = {"pydantic", "pydantic_core", "pyyaml", "numpy", "msgspec"}
TRIGGER_NEEDS = {*TRIGGER_DISTRIBUTIONS, "annotated-types", "typing-extensions", "typing-inspection"}
LAMBDA_HAS = {"boto3", "botocore", "jmespath", "python-dateutil", "six", "s3transfer", "urllib3"}


def install(distributions: set[str], folder: Path) -> None:
    """Out of this environment, file by file; a wheel's own record says which."""
    for name in distributions:
        found = metadata.distribution(name)
        for file in found.files or ():
            source = Path(str(file.locate()))
            if ".." in file.parts or not source.is_file() or source.suffix == ".pyc":
                continue
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / file)


def run(folder: Path, code: str) -> str:
    """Alone: no site-packages, no environment, nothing of this checkout."""
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"]
    done = subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_tensor_function_needs_four_distributions(default):
    assert copy_closure(TENSOR_MODULES, default.folder / "again") == TENSOR_DISTRIBUTIONS


def test_the_tensor_functions_asset_loads_alone_and_small(default, tmp_path):
    folder = tmp_path / "function"
    shutil.copytree(default.assets.tensor_function, folder)
    install(TENSOR_DISTRIBUTIONS, folder)
    models = modules_of("common.models")
    code = f"import lambda_functions.tensor_task as task, {', '.join(models)}\nprint(task.handler.__name__)"
    assert run(folder, code) == "handler"
    zipped = Path(shutil.make_archive(str(tmp_path / "function"), "zip", folder))
    assert zipped.stat().st_size < 50 * 2**20


def test_the_job_triggers_asset_loads_alone_and_knows_all_names(default, tmp_path):
    folder = tmp_path / "function"
    shutil.copytree(default.assets.job_trigger, folder)
    install(TRIGGER_NEEDS | LAMBDA_HAS, folder)
    code = (
        "import lambda_functions.job_trigger, json\n"
        "from lambda_functions.known_names import known_names\n"
        "print(json.dumps({kind: known_names(kind) for kind in ('model', 'format', 'backend', 'bundled')}))"
    )
    assert json.loads(run(folder, code)) == json.loads(json.dumps(from_folders()))
    assert not (folder / "graph_server").exists()


def test_the_steps_load_with_what_lambda_has(default, tmp_path):
    folder = tmp_path / "function"
    shutil.copytree(default.assets.steps, folder)
    install(LAMBDA_HAS, folder)
    run(folder, f"import {', '.join(STEP_MODULES)}")


def test_a_closure_follows_imports_wherever_they_stand(tmp_path):
    files = {
        "a/__init__.py": "",
        "a/one.py": "import json\nfrom a import two\n\ndef f():\n    from a.three import g\n",
        "a/two.py": "import numpy.linalg\n",
        "a/three.py": "from yaml import safe_load\n",
        "a/four.py": "import scipy\n",
    }
    for name, words in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(words, encoding="utf-8")
    found = closure(["a.one"], tmp_path)
    assert {str(file) for file in found.files} == {"a/__init__.py", "a/one.py", "a/two.py", "a/three.py"}
    assert found.packages == {"numpy", "yaml"}


def test_names_are_listed_as_a_file(tmp_path):
    write_known_names(tmp_path)
    listed = json.loads((tmp_path / "known_names.json").read_text(encoding="utf-8"))
    assert "gcn" in listed["model"]
    assert "cora" in listed["bundled"]


@pytest.mark.parametrize("name", ["tensor_function", "job_trigger", "steps"])
def test_no_byte_code_is_deployed(default, name):
    """It would change an asset's hash from one build to the next."""
    assert not list(getattr(default.assets, name).rglob("*.pyc"))


def test_what_was_not_built_is_told(tmp_path):
    with pytest.raises(ClusterError, match="nothing is built to be deployed: tensor-function-arm64, "):
        Assets.built(tmp_path, Context())
