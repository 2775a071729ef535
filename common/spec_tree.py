"""What a parser found: mappings with the line of each key, before anybody checks them.

Both parsers, YAML and JSON, build this tree; here it becomes plain values, and a key that stands twice is refused.
"""

from dataclasses import dataclass

from common.errors import SpecError

MAX_DEPTH = 20
"""Levels of nesting; a job spec has three."""


@dataclass(frozen=True)
class Entry:
    """One key of a mapping; `line` counts from 1."""

    key: str
    line: int
    value: object


@dataclass(frozen=True)
class Entries:
    """A mapping as it was written, repeated keys included."""

    entries: tuple[Entry, ...]


def plain(tree: Entries, source: str) -> tuple[dict[str, object], dict[str, int]]:
    """(nested values, full name of each key -> its line). Raises SpecError for a key that stands twice."""
    lines: dict[str, int] = {}
    return _mapping(tree, source, "", lines), lines


def too_deep(source: str, line: int) -> SpecError:
    return SpecError(f"{source}:{line}: more than {MAX_DEPTH} levels of nesting", why="a job spec has three levels")


def _mapping(tree: Entries, source: str, prefix: str, lines: dict[str, int]) -> dict[str, object]:
    values: dict[str, object] = {}
    here: dict[str, int] = {}
    for entry in tree.entries:
        if entry.key in here:
            raise SpecError(
                f"{source}:{entry.line}: {prefix}{entry.key} stands twice",
                why=f"it is on line {here[entry.key]} and on line {entry.line}, and only one can count",
                fix="remove one of them",
            )
        here[entry.key] = lines[f"{prefix}{entry.key}"] = entry.line
        values[entry.key] = _value(entry.value, source, f"{prefix}{entry.key}.", lines)
    return values


def _value(value: object, source: str, prefix: str, lines: dict[str, int]) -> object:
    if isinstance(value, Entries):
        return _mapping(value, source, prefix, lines)
    if isinstance(value, list):
        return [_value(item, source, f"{prefix}{number}.", lines) for number, item in enumerate(value)]
    return value
