"""Opens a file whatever packs it: gzip, Zstandard, bzip2 or LZ4, told by its first bytes and not by its name.

A small file can unpack to more than any machine holds: what is read whole is bounded by the memory that is free.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow

from common.errors import DatasetError
from graph_server.ingest.memory import available_memory_bytes
from graph_server.ingest.raw_graph import damaged

PIECE_BYTES = 16 << 20
PACKED_SUFFIXES = (".gz", ".gzip", ".zst", ".bz2", ".lz4")

_MARKS = (
    (re.compile(rb"\x1f\x8b"), "gzip"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd"),
    (re.compile(rb"BZh[1-9]\x31\x41\x59\x26\x53\x59"), "bz2"),
    (re.compile(rb"\x04\x22\x4d\x18"), "lz4"),
)


def open_unpacked(path: Path) -> pyarrow.NativeFile:
    """A stream of the file's unpacked bytes. OSError comes out of it when the packing breaks off."""
    with path.open("rb") as file:
        head = file.read(10)
    codec = next((name for mark, name in _MARKS if mark.match(head)), None)
    stream = pyarrow.OSFile(str(path))
    return stream if codec is None else pyarrow.CompressedInputStream(stream, codec)


def unpacked_pieces(path: Path, size: int = PIECE_BYTES) -> Iterator[bytes]:
    """The unpacked bytes in pieces of at most `size`."""
    try:
        with open_unpacked(path) as stream:
            while piece := stream.read(size):
                yield piece
    except (OSError, pyarrow.ArrowException) as error:
        raise damaged(path, error) from error


def read_unpacked(path: Path) -> bytes:
    """All of it at once; refused when it is more than the memory that is free."""
    limit, pieces, size = available_memory_bytes(), [], 0
    for piece in unpacked_pieces(path):
        size += len(piece)
        if size > limit:
            raise DatasetError(
                what=f"{path} unpacks to more than {limit / 1e9:.1f} GB",
                why="this file is read whole, and no more memory is free",
                fix="use a machine with more memory, or save the data as .npy or Parquet",
            )
        pieces.append(piece)
    return b"".join(pieces)


def plain_suffix(path: Path) -> str:
    """The ending below the packing: `.csv` for edges.csv.gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in PACKED_SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
