"""A table in many files, as Spark and others write it: part-2 comes before part-10."""

import re
from pathlib import Path

_NUMBER = re.compile(r"(\d+)")


def natural_order(path: Path) -> tuple[tuple[int, str], ...]:
    """A sort key by which numbers in names count as numbers."""
    pieces = _NUMBER.split(str(path))
    return tuple((int(piece), "") if piece.isdigit() and piece.isascii() else (-1, piece) for piece in pieces)


def part_files(folder: Path) -> list[Path]:
    """Every file below the folder, in natural order; hidden files and marks such as _SUCCESS are left out."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    shown = [file for file in files if not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)]
    return sorted(shown, key=natural_order)
