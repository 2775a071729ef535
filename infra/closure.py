"""What a module of ours reaches by imports: our files, and the packages of others.

By reading, not by running: what is imported inside a function counts, and nothing has to be installed. A package that
is opened by name, such as common.models, is named by the caller.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Closure:
    files: tuple[Path, ...]
    """Relative to the root; the __init__ files of their packages are among them."""
    packages: frozenset[str]
    """Top-level names of others' packages."""


def closure(modules: Sequence[str], root: Path = ROOT) -> Closure:
    files: dict[str, Path] = {}
    packages: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in files:
            continue
        path = _file(name, root)
        if path is None:
            packages.add(name.partition(".")[0])
            continue
        files[name] = path
        waiting += [name.rpartition(".")[0]] if "." in name else []
        waiting += _imports(root / path, root)
    return Closure(tuple(sorted(files.values())), frozenset(packages - sys.stdlib_module_names))


def modules_of(package: str, root: Path = ROOT) -> list[str]:
    folder = root / package.replace(".", "/")
    return [f"{package}.{path.stem}" for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]


def _file(name: str, root: Path) -> Path | None:
    """Of a module or package of ours."""
    path = Path(name.replace(".", "/"))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if (root / candidate).is_file():
            return candidate
    return None


def _imports(path: Path, root: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            within = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in within if _file(name, root) is not None)
