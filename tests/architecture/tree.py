"""The files of the project, as the tests of its shape see them."""

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("benchmarks", "cli", "common", "graph_server", "infra", "lambda_functions", "local_cloud", "parameter_server")
SKIPPED = {"build", "dist", "runs", "cdk.out", "__pycache__"}


@functools.cache
def project_files() -> tuple[Path, ...]:
    """Every file that git holds or would take, relative to the root; without git, every file outside hidden folders."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return tuple(sorted(_walk(ROOT)))
    names = sorted(name for name in listing.split("\0") if name)
    return tuple(Path(name) for name in names if (ROOT / name).is_file())


def _walk(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir():
            hidden = entry.name.startswith(".") and entry.name != ".ci"
            if not hidden and entry.name not in SKIPPED and not entry.name.endswith(".egg-info"):
                yield from _walk(entry)
        else:
            yield entry.relative_to(ROOT)


def python_files() -> tuple[Path, ...]:
    return tuple(path for path in project_files() if path.suffix == ".py")


def room_files() -> tuple[Path, ...]:
    """The Python files of the program itself: no tests, no documentation."""
    return tuple(path for path in python_files() if path.parts[0] in ROOMS)


@functools.cache
def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path), filename=str(path))


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(tree(path)):
        if isinstance(node, Function):
            yield node
