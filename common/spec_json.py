"""JSON with the line of each key. Strict: NaN, Infinity and a second document are refused."""

import json

from common.errors import SpecError
from common.spec_tree import MAX_DEPTH, Entries, Entry, too_deep

_SPACES = " \t\r\n"


def parse_json(text: str, source: str) -> object:
    """Entries for a mapping, a list, or a scalar. Raises SpecError with line and column."""
    try:
        value, end = _value(text, _skip(text, 0), depth=0, source=source)
        end = _skip(text, end)
        if end != len(text):
            raise json.JSONDecodeError("more text after the end", text, end)
    except json.JSONDecodeError as error:
        at = f"{source}:{error.lineno}: column {error.colno}"
        raise SpecError(f"{at}: this is not JSON", why=error.msg, fix="correct the text there") from None
    return value


def _value(text: str, at: int, *, depth: int, source: str) -> tuple[object, int]:
    if depth > MAX_DEPTH:
        raise too_deep(source, _line(text, at))
    if text[at : at + 1] == "{":
        return _mapping(text, at + 1, depth=depth, source=source)
    if text[at : at + 1] == "[":
        return _list(text, at + 1, depth=depth, source=source)
    return _scalar(text, at, source)


def _mapping(text: str, at: int, *, depth: int, source: str) -> tuple[Entries, int]:
    entries: list[Entry] = []
    at = _skip(text, at)
    while text[at : at + 1] != "}":
        if entries:
            at = _skip(text, _expect(text, at, ","))
        line = _line(text, at)
        _expect(text, at, '"')
        key, at = _scalar(text, at, source)
        at = _skip(text, _expect(text, _skip(text, at), ":"))
        value, at = _value(text, at, depth=depth + 1, source=source)
        entries.append(Entry(str(key), line, value))
        at = _skip(text, at)
    return Entries(tuple(entries)), at + 1


def _list(text: str, at: int, *, depth: int, source: str) -> tuple[list[object], int]:
    items: list[object] = []
    at = _skip(text, at)
    while text[at : at + 1] != "]":
        if items:
            at = _skip(text, _expect(text, at, ","))
        item, at = _value(text, at, depth=depth + 1, source=source)
        items.append(item)
        at = _skip(text, at)
    return items, at + 1


def _scalar(text: str, at: int, source: str) -> tuple[object, int]:
    def not_a_number(name: str) -> object:
        raise SpecError(
            f"{source}:{_line(text, at)}: {name} is not JSON", why="no key of a job spec may be NaN or infinite"
        )

    try:
        return json.JSONDecoder(parse_constant=not_a_number).raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # Python's limit on the digits of an int.
        raise json.JSONDecodeError("a number of too many digits", text, at) from None


def _expect(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"expected {mark}", text, at)
    return at + 1


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACES:
        at += 1
    return at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
