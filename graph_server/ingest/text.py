"""Text files as users have them: gzip, a byte-order mark, CR, LF or CRLF, comments, blank lines, any separator.

Every line keeps its number, because an error without one helps nobody.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.raw_graph import damaged

COMMENTS = (b"#", b"%", b"//")
MISSING = frozenset({"", "nan", "null", "none", "na", "n/a"})

_BLANKS = " \t\x0b\x0c"
"""What surrounds a field; other blanks of Unicode are part of an id."""
_SEPARATOR = re.compile(r"[ \t]*,[ \t]*|\t")
_GAP = re.compile(r"[ \t\x0b\x0c]+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE | re.ASCII)


class Line(NamedTuple):
    """`number` counts from 1 and counts every line of the file, comments and blank ones too."""

    number: int
    fields: tuple[str, ...]
    text: str


def read_text_bytes(path: Path) -> bytes:
    """The file's bytes, gunzipped, without a byte-order mark.

    Raises DatasetError for a broken gzip, for UTF-16 and for bytes that are no text.
    """
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, error) from error
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data:
        raise DatasetError(
            what=f"{path} is not UTF-8 text",
            why="it holds zero bytes or a UTF-16 mark",
            fix="save it as UTF-8 text, or as .npy",
        )
    return data.removeprefix(b"\xef\xbb\xbf")


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes, gunzipped, without a byte-order mark: enough to see what the file is."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as file:
        return file.read(size).removeprefix(b"\xef\xbb\xbf")


def is_comment_or_blank(line: bytes) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith(COMMENTS)


def lines_of(data: bytes, path: Path) -> Iterator[Line]:
    """The lines that hold something, split into fields."""
    for number, raw in enumerate(data.splitlines(), start=1):
        if is_comment_or_blank(raw):
            continue
        try:
            text = raw.decode("utf-8").strip(_BLANKS)
        except UnicodeDecodeError as error:
            raise line_error(path, number, ascii(raw), "is not UTF-8") from error
        yield Line(number, _split(text, path, number), text)


def line_error(path: Path, number: int, text: str, reason: str, fix: str = "") -> DatasetError:
    """The error for one line."""
    shown = text if len(text) <= 120 else text[:117] + "..."
    return DatasetError(
        what=f"{path}:{number}: {shown!r} {reason}",
        why="a line that cannot be read is never skipped or guessed",
        fix=fix or "correct the line, or start it with # to make it a comment",
    )


def is_number(field: str) -> bool:
    return _NUMBER.fullmatch(field) is not None


def find_column(header: Line, names: frozenset[str]) -> int | None:
    return next((index for index, field in enumerate(header.fields) if field.lower() in names), None)


def header_note(path: Path, header: Line | None) -> tuple[str, ...]:
    if header is None:
        return ()
    shown = header.text if len(header.text) <= 80 else header.text[:77] + "..."
    return (f"{path.name}: line {header.number} was read as a header: {shown}",)


def number_or_missing(field: str, line: Line, path: Path) -> float:
    if field.lower() in MISSING:
        return np.nan
    if not is_number(field):
        fix = "correct it; an id column of text needs a header that names it `id`"
        raise line_error(path, line.number, field, "is not a number", fix)
    return float(field)


def _split(text: str, path: Path, number: int) -> tuple[str, ...]:
    """Comma or tab where the line has one, else runs of blanks; quotes as in CSV."""
    if '"' in text:
        separator = "," if "," in text else "\t" if "\t" in text else " "
        try:
            rows = list(csv.reader([text], delimiter=separator, skipinitialspace=True, strict=True))
        except csv.Error as error:
            raise line_error(path, number, text, f"has a broken quote: {error}") from error
        return tuple(field.strip(_BLANKS) for field in rows[0])
    if "," in text or "\t" in text:
        return tuple(field.strip(_BLANKS) for field in _SEPARATOR.split(text))
    return tuple(_GAP.split(text))
