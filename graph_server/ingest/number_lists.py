"""Lists of numbers written into one cell: "0.1, 0.2". Split and parsed as a whole column, not cell by cell."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute

from graph_server.ingest.raw_graph import Array
from graph_server.ingest.text import is_number, line_error


def split_numbers(cells: Sequence[str], lines: Sequence[int], path: Path) -> tuple[Array, Array]:
    """values float64 of all cells, one after the other, and how many each cell holds, int64 [n].

    An empty cell holds none. Raises DatasetError with the line of the first cell that is no list of numbers.
    """
    column = pyarrow.array([cell.strip(" []()") for cell in cells], pyarrow.large_string())
    lists = pyarrow.compute.split_pattern(column, ",")
    lengths = np.asarray(pyarrow.compute.list_value_length(lists)).astype(np.int64)
    empty = np.asarray(pyarrow.compute.equal(column, ""))
    lengths[empty] = 0
    flat = pyarrow.compute.utf8_trim_whitespace(pyarrow.compute.list_flatten(lists.filter(pyarrow.array(~empty))))
    try:
        return flat.cast(pyarrow.float64()).to_numpy(zero_copy_only=False), lengths
    except pyarrow.ArrowInvalid as error:
        for cell, line in zip(cells, lines, strict=True):
            plain = cell.strip(" []()")
            odd = [field for field in plain.split(",") if plain and not is_number(field.strip())]
            if odd:
                raise line_error(path, line, odd[0], "is not a number") from error
        raise line_error(path, lines[0], cells[0], f"is no list of numbers: {error}") from error
