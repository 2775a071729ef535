"""Descriptions in YAML, as DGL writes them: safely loaded, then checked against a struct."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from common.errors import DatasetError
from graph_server.ingest.raw_graph import damaged

Struct = TypeVar("Struct", bound=msgspec.Struct)

_MOST_BYTES = 4 << 20


def holds_keys(file: Path, keys: Iterable[str]) -> bool:
    """Whether a file is there, is YAML, and has these keys at its top."""
    try:
        content = _load(file)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return False
    return isinstance(content, dict) and set(keys) <= set(content)


def read_yaml(file: Path, kind: type[Struct]) -> Struct:
    """Raises DatasetError naming the key that is missing or of the wrong kind."""
    try:
        return msgspec.convert(_load(file), kind, strict=False)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise damaged(file, str(error).replace("\n", " ")) from error


def named_file(description: Path, name: str) -> Path:
    """A file that a description names: it has to be there, in the description's folder or below."""
    try:
        file = description.parent / name
        is_there, is_below = file.is_file(), file.resolve().is_relative_to(description.parent.resolve())
    except (OSError, ValueError) as error:  # longer than a name may be, or with a zero byte
        raise damaged(description, f"{name[:80]!r} cannot be the name of a file: {error.args[-1]}") from error
    if not is_below:
        raise DatasetError(
            what=f"{description} names {name}, which lies outside {description.parent}",
            why="a dataset is one folder, and nothing else is read",
            fix="move the file into the folder, and correct its path",
        )
    if not is_there:
        raise DatasetError(
            what=f"{description.parent} lacks {name}",
            why=f"{description.name} names it",
            fix="add the file, or correct its path there",
        )
    return file


def _load(file: Path) -> object:
    if file.stat().st_size > _MOST_BYTES:
        raise ValueError(f"a description of more than {_MOST_BYTES >> 20} MB")
    return yaml.safe_load(file.read_text(encoding="utf-8"))
