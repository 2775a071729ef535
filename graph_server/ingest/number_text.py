"""Tables of numbers as text, comma between, no header, packed or not: read in pieces, never as Python objects.

Rows count from 1 and are named in errors.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.csv

from common.errors import DatasetError
from graph_server.ingest.memory import available_memory_bytes
from graph_server.ingest.raw_graph import Array, damaged
from graph_server.ingest.streams import open_unpacked
from graph_server.ingest.text import read_head

_BLOCK_BYTES = 8 << 20
_ROW = re.compile(r"Row #(\d+)")


def read_whole_numbers(path: Path) -> Array:
    """int64 [rows, columns]; an empty cell is an error."""
    blocks = []
    for first, batch in _batches(path, pyarrow.int64()):
        for column in batch.columns:
            if column.null_count:
                row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                raise _row_error(path, first + row, "has an empty cell where a whole number belongs")
        blocks.append(np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns]))
    return np.concatenate(blocks) if blocks else np.zeros((0, 1), dtype=np.int64)


def read_numbers(path: Path, dtype: type = np.float32) -> Array:
    """float32 or float64 [rows, columns]; an empty cell is NaN; a number beyond the type is an error."""
    blocks = []
    for first, batch in _batches(path, pyarrow.float64()):
        block = np.empty((batch.num_rows, batch.num_columns), dtype=dtype)
        for index, column in enumerate(batch.columns):
            values = column.to_numpy(zero_copy_only=False)
            with np.errstate(over="ignore"):
                block[:, index] = values
            if (lost := np.isinf(block[:, index]) & np.isfinite(values)).any():
                row = int(np.flatnonzero(lost)[0])
                raise _row_error(path, first + row, f"holds {values[row]}, which is beyond float32 (3.4e38)")
        blocks.append(block)
    return np.concatenate(blocks) if blocks else np.zeros((0, 1), dtype=dtype)


def _batches(path: Path, kind: pyarrow.DataType) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    """Batches of rows, each with the number of its first row. An empty file has none."""
    head = read_head(path)
    if not head.strip():
        return
    line = head.lstrip(b"\r\n").splitlines()[0]
    names = [str(index) for index in range(line.count(b",") + 1)]
    first, size, limit = 1, 0, available_memory_bytes()
    try:
        with open_unpacked(path) as stream:
            reader = pyarrow.csv.open_csv(
                stream,
                pyarrow.csv.ReadOptions(
                    column_names=names, use_threads=False, block_size=max(_BLOCK_BYTES, 4 * len(line))
                ),
                pyarrow.csv.ParseOptions(quote_char=False),
                pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, kind)),
            )
            for batch in reader:
                size += batch.nbytes
                if size > limit:
                    raise DatasetError(
                        what=f"{path} holds more numbers than the {limit / 1e9:.1f} GB that are free",
                        why="this table is held in memory",
                        fix="use a machine with more memory",
                    )
                yield first, batch
                first += batch.num_rows
    except pyarrow.ArrowInvalid as error:
        raise line_refusal(path, error) from error
    except (OSError, pyarrow.ArrowException) as error:
        raise damaged(path, error) from error


def line_refusal(path: Path, error: pyarrow.ArrowInvalid) -> DatasetError:
    """The error for text that Arrow stumbled over, with the row it names."""
    row = _ROW.search(str(error))
    reason = str(error).partition(f"Row #{row[1]}: " if row else "\n")[2] or str(error)
    return _row_error(path, int(row[1]), reason) if row else damaged(path, reason)


def _row_error(path: Path, row: int, reason: str) -> DatasetError:
    return DatasetError(
        what=f"{path}: row {row}: {reason[:200]}",
        why="a row that cannot be read is never skipped or guessed",
        fix="correct the row, or fetch the file again",
    )
