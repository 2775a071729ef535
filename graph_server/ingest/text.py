"""Text files as users have them: packed, a byte-order mark, CR, LF or CRLF, comments, blank lines, any separator.

Every line keeps its number, because an error without one helps nobody.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.streams import read_unpacked, unpacked_pieces

COMMENTS = (b"#", b"%", b"//")
LONGEST_LINE = 64 << 20
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
    """The file's bytes, unpacked, without a byte-order mark.

    Raises DatasetError for broken packing, for UTF-16 and for bytes that are no text.
    """
    data = read_unpacked(path)
    refuse_binary(data, path)
    return data.removeprefix(b"\xef\xbb\xbf")


def refuse_binary(data: bytes, path: Path) -> None:
    """Raises DatasetError for UTF-16 and for bytes that are no text."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data:
        raise DatasetError(
            what=f"{path} is not UTF-8 text",
            why="it holds zero bytes or a UTF-16 mark",
            fix="save it as UTF-8 text, or as .npy",
        )


def text_pieces(path: Path, size: int) -> Iterator[bytes]:
    """Pieces of about `size` bytes, each of whole lines that end in LF: a file of any length in little memory."""
    rest = held = b""
    for number, raw in enumerate(unpacked_pieces(path, size)):
        refuse_binary(raw, path)
        raw = held + (raw.removeprefix(b"\xef\xbb\xbf") if number == 0 else raw)
        held = b"\r" if raw.endswith(b"\r") else b""  # its LF may begin the next piece
        data = rest + one_line_end(raw.removesuffix(held))
        end = data.rfind(b"\n") + 1
        if len(data) - end > LONGEST_LINE:
            raise DatasetError(
                what=f"{path} has a line of more than {LONGEST_LINE >> 20} MB",
                why="an edge is one short line, so this is not a list of edges",
                fix="give a text file with one edge a line",
            )
        if end:
            yield data[:end]
        rest = data[end:]
    if rest + held:
        yield rest + one_line_end(held)


def one_line_end(data: bytes) -> bytes:
    """CR and CRLF become LF."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes, unpacked, without a byte-order mark: enough to see what the file is."""
    head = next(unpacked_pieces(path, size), b"")
    return head.removeprefix(b"\xef\xbb\xbf")


def is_comment_or_blank(line: bytes) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith(COMMENTS)


def lines_of(data: bytes, path: Path, first: int = 1) -> Iterator[Line]:
    """The lines that hold something, split into fields; `first` is the number of the first line."""
    for number, raw in enumerate(data.splitlines(), start=first):
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
