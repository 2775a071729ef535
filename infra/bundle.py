"""`python -m infra.bundle`: what is deployed, into build/cloud/, each folder anew. The one step that needs the network.

tensor-function-<arch>/   closure of lambda_functions.tensor_task, NumPy, msgspec, threadpoolctl, pyzmq
job-trigger-<arch>/       closure of lambda_functions.job_trigger, pydantic, PyYAML, NumPy, msgspec; known_names.json
steps/                    closure of the other functions; boto3 is Lambda's own
servers-<arch>/           boot/, and wheels/: our wheel and every locked dependency's

Dependencies are the locked versions, for the architecture and the Python that functions and servers have, whatever
machine this runs on. Nothing is compiled: an asset's hash depends on its content alone.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from infra.assets import ARCHITECTURES
from infra.closure import ROOT, closure, modules_of
from infra.context import Architecture
from lambda_functions.known_names import LISTING, from_folders

BUILT = ROOT / "build" / "cloud"
PYTHON = "3.14"
"""Of infra/python_function.py and infra/server/install.sh."""
TENSOR_MODULES = ("lambda_functions.tensor_task", *modules_of("common.models"))
TRIGGER_MODULES = ("lambda_functions.job_trigger", *modules_of("common.models"))
STEP_MODULES = tuple(f"lambda_functions.{name}" for name in ("launch_servers", "collect", "sweep", "stop_job"))
OF_THE_RUNTIME = frozenset({"boto3", "botocore"})
DISTRIBUTIONS: Mapping[str, str] = {"yaml": "pyyaml", "zmq": "pyzmq"}
"""Import name -> name of the distribution, where they differ."""
GLIBC = "2_28"
"""Of the wheels' platform; AL2023 and the Lambda runtime have a newer one."""
MACHINE: Mapping[Architecture, str] = {"arm64": "aarch64", "x86_64": "x86_64"}


def copy_closure(modules: Sequence[str], folder: Path) -> frozenset[str]:
    """Our files into a fresh folder; the distributions they need beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    found = closure(modules)
    for file in found.files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, folder / file)
    return frozenset(DISTRIBUTIONS.get(name, name) for name in found.packages - OF_THE_RUNTIME)


def write_known_names(folder: Path) -> None:
    """The job trigger checks names and has none of the code that bears them."""
    (folder / LISTING.name).write_text(json.dumps(from_folders(), indent=2) + "\n", encoding="utf-8")


def copy_boot(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "infra" / "server", folder / "boot")


def main() -> None:
    build = BUILT
    copy_closure(STEP_MODULES, build / "steps")
    for architecture in ARCHITECTURES:
        tensor, trigger = build / f"tensor-function-{architecture}", build / f"job-trigger-{architecture}"
        _install(copy_closure(TENSOR_MODULES, tensor), tensor, architecture)
        _install(copy_closure(TRIGGER_MODULES, trigger), trigger, architecture)
        write_known_names(trigger)
        servers = build / f"servers-{architecture}"
        copy_boot(servers)
        _wheels(servers / "wheels", architecture)


def _install(distributions: frozenset[str], folder: Path, architecture: Architecture) -> None:
    """Plain, without byte code, which would differ from one build to the next."""
    options = ["--no-compile-bytecode", "--constraint", "requirements.lock", "--target", str(folder)]
    _run([*_uv("pip", "install"), *platform(architecture), *options, *sorted(distributions)])
    shutil.rmtree(folder / "bin", ignore_errors=True)
    (folder / ".lock").unlink(missing_ok=True)


def _wheels(folder: Path, architecture: Architecture) -> None:
    """Every dependency that the lock has for such a machine, and our own wheel."""
    folder.mkdir(parents=True)
    wanted = wanted_wheels(folder, architecture)
    tags = [f"manylinux_{glibc}_{MACHINE[architecture]}" for glibc in (GLIBC, "2_27", "2_26", "2_24", "2_17")]
    tags.append(f"manylinux2014_{MACHINE[architecture]}")
    platforms = [part for tag in tags for part in ("--platform", tag)]
    exact = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--implementation", "cp"]
    paths = ["--dest", str(folder), "--requirement", str(wanted)]
    pip = [str(ROOT / ".uv/bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "download", "--python-version", PYTHON, *platforms, *exact, *paths])
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # what setuptools left of an earlier state of the code
    _run([*_uv("build"), "--wheel", "--out-dir", str(folder)])
    (folder / ".gitignore").unlink(missing_ok=True)


def wanted_wheels(folder: Path, architecture: Architecture) -> Path:
    """What has to be in such a wheelhouse, with hashes: the locked versions, as far as there are wheels of them."""
    wanted = folder / "requirements.txt"
    plain = ["--no-header", "--no-annotate", "--no-emit-index-url", "--generate-hashes"]
    paths = ["--constraint", "requirements.lock", "--output-file", str(wanted), "pyproject.toml"]
    _run([*_uv("pip", "compile"), *platform(architecture), *plain, *paths])
    return wanted


def platform(architecture: Architecture) -> list[str]:
    platform = f"{MACHINE[architecture]}-manylinux_{GLIBC}"
    return ["--python-platform", platform, "--python-version", PYTHON, "--only-binary", ":all:"]


def _uv(*verb: str) -> list[str]:
    return [str(ROOT / ".uv/bin/uv"), *verb, "--quiet"]


def _run(command: list[str]) -> None:
    """A wheel bears the times of its files: with this one it is the same from every checkout."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=sys.stderr, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ... failed, see above")


if __name__ == "__main__":
    main()
