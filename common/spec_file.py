"""Reads a job spec: a small YAML or JSON file, a mapping at its top. Only the text is checked here, not the keys."""

import re
from collections.abc import Mapping
from pathlib import Path

from common.errors import SpecError
from common.spec_json import parse_json
from common.spec_tree import Entries, plain
from common.spec_yaml import parse_yaml

MAX_BYTES = 1_000_000
SUFFIXES = (".yaml", ".yml", ".json")


def read(path: Path) -> tuple[Mapping[str, object], Mapping[str, int]]:
    """(nested values, full name of each key -> its line). Raises SpecError: unreadable, too large, not a job spec."""
    return parse(_text(path), path.name)


def parse(text: str, source: str) -> tuple[Mapping[str, object], Mapping[str, int]]:
    """As `read`, from text; `source` is the file's name, and JSON if it ends in .json."""
    tree = parse_json(text, source) if source.lower().endswith(".json") else parse_yaml(text, source)
    if not isinstance(tree, Entries):
        found = "nothing" if tree is None else "a list" if isinstance(tree, list) else "a single value"
        raise SpecError(
            f"{source}: the top level is {found}",
            why="a job spec is a mapping of keys to values",
            fix="begin with a line such as dataset: cora",
        )
    return plain(tree, source)


def is_job_spec(path: Path) -> bool:
    """Whether this is a .yaml, .yml or .json file with a top-level key `dataset`.

    A file with an error in it counts when it looks so, for the error is then worth showing.
    """
    if path.suffix.lower() not in SUFFIXES or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return False
    try:
        return "dataset" in read(path)[0]
    except SpecError:
        return re.search(rb"""^[\s{]*["']?dataset["']?\s*:""", path.read_bytes(), re.MULTILINE) is not None


def _text(path: Path) -> str:
    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
    except OSError as error:
        raise SpecError(f"{path} cannot be read", why=error.strerror or str(error), fix="check the path") from None
    if data is None:
        raise SpecError(
            f"{path} has {path.stat().st_size:,} bytes",
            why=f"a job spec has at most {MAX_BYTES:,}",
            fix="if this is a dataset, name it under dataset: path",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{path} is not UTF-8 text", why=f"byte {error.start} is no part of it") from None
