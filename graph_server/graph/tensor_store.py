"""The tensors of one graph server, by name: own rows, and tables of [own | ghost] rows that Gathers read.

Train and evaluation passes have tensors of their own; constants (features, labels or targets, masks, hoisted gathers)
are shared. A step writes its own interval's rows only. Every block of a table bears the pass it was published in, and
ghosts are overwritten, never added up, and never by an older pass. Who reads a table sees each block whole.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from common.errors import BadFrame
from common.passes import Pass, PassKind
from common.saga.arrays import Array
from common.saga.cost import TABLES, Group, is_rounded, row_stride, stored_tensors, tensor_width
from common.saga.program import Programs
from graph_server.graph import aligned
from graph_server.graph.partition import Partition
from graph_server.graph.table_lock import TableLock

CONSTANT_TYPES: Mapping[str, Any] = {"labels": np.int64, "masks": np.uint8}


class TensorStore:
    """dtype: float32, or float64 for gradient checks; tables of bfloat16 are uint16.

    Raises KeyError for a tensor that no program names.
    """

    def __init__(self, programs: Programs, partition: Partition, dtype: Any = np.float32) -> None:
        self.dtype, self._programs, self._partition = np.dtype(dtype), programs, partition
        self._arrays: dict[tuple[Group, str], Array] = {}
        self._published: dict[tuple[Group, str, int], Pass] = {}
        self._epochs: dict[tuple[Group, str], npt.NDArray[np.int64]] = {}
        self._locks: dict[tuple[Group, str], TableLock] = {}
        for group, name in stored_tensors(programs):
            self._allocate(group, name)

    def array(self, pass_: Pass, name: str) -> Array:
        """All rows: [own, width], of a table [own + ghosts, width]."""
        return self._arrays[self._key(pass_, name)]

    def constant(self, name: str) -> Array:
        return self._arrays["constant", name]

    def has_constant(self, name: str) -> bool:
        return ("constant", name) in self._arrays

    def free_constant(self, name: str) -> None:
        del self._arrays["constant", name]

    def rows(self, pass_: Pass, name: str, interval: int) -> Array:
        """A view of an own interval's rows."""
        return self.array(pass_, name)[self._partition.rows[interval]]

    def own_rows(self, pass_: Pass, name: str, interval: int) -> Array:
        """The same, for whoever asks from outside. Raises BadFrame for a tensor or an interval that is not here."""
        if self._key(pass_, name) not in self._arrays or interval not in self._partition.rows:
            raise BadFrame(
                f"{name} of interval {interval} in {pass_}", why="this graph server holds no such tensor or interval"
            )
        return self.rows(pass_, name, interval)

    def write(self, pass_: Pass, name: str, interval: int, block: Array) -> None:
        self.rows(pass_, name, interval)[...] = block

    def publish(self, pass_: Pass, table: str, interval: int, block: Array) -> None:
        """Put an own interval's rows into a table; into one of bfloat16, as their bits in uint16."""
        with self._locks[self._key(pass_, table)].writing():
            self.write(pass_, table, interval, block)
            self._note(pass_, table, interval)

    def reading(self, pass_: Pass, table: str) -> AbstractContextManager[None]:
        """Meanwhile no block of the table changes. For the time of one kernel call."""
        return self._locks[self._key(pass_, table)].reading()

    def epochs(self, pass_: Pass, table: str) -> npt.NDArray[np.int64]:
        """[num_intervals] the epoch of each interval's block, 0 before the first. To be looked at while reading."""
        return self._epochs[self._key(pass_, table)]

    def accept_ghosts(self, pass_: Pass, table: str, interval: int, block: Array) -> bool:
        """Put another graph server's rows into a table, unless these or newer ones are there. Any thread but one.

        Raises BadFrame for a table or an interval that is not there, and for other rows than its ghosts here.
        """
        self._check_ghosts(pass_, table, interval, block)
        key = (*self._key(pass_, table), interval)
        if key in self._published and self._published[key] >= pass_:
            return False
        place = self.ghost_block(table, interval)
        with self._locks[self._key(pass_, table)].writing():
            if place is not None:
                self.array(pass_, table)[place] = block
            self._note(pass_, table, interval)
        return True

    def ghost_block(self, table: str, interval: int) -> slice | None:
        """The table's rows that hold an interval's ghosts; None if it has none here."""
        return self._edges(table).ghost_blocks.get(interval)

    @property
    def nbytes(self) -> int:
        return sum(len(array) * array.strides[0] for array in self._arrays.values())

    @property
    def seconds_waited(self) -> float:
        """Of all readers and writers, for a table."""
        return sum(lock.waited for lock in self._locks.values())

    def _note(self, pass_: Pass, table: str, interval: int) -> None:
        key = self._key(pass_, table)
        self._published[(*key, interval)] = pass_
        self._epochs[key][interval] = pass_.epoch

    def _check_ghosts(self, pass_: Pass, table: str, interval: int, block: Array) -> None:
        what = f"{block.dtype} rows {block.shape} of interval {interval} for table {table} in {pass_}"
        array, place = self._arrays.get(self._key(pass_, table)), self.ghost_block(table, interval)
        if array is None or not table.startswith(TABLES) or interval >= self._partition.book.num_intervals:
            raise BadFrame(what, why="this graph server holds no such table, or there is no such interval")
        expected = (0 if place is None else place.stop - place.start, array.shape[1])
        if (block.shape, block.dtype) != (expected, array.dtype) or interval in self._partition.rows:
            raise BadFrame(what, why=f"of this interval it holds {array.dtype} ghosts {expected}")

    def _key(self, pass_: Pass, name: str) -> tuple[Group, str]:
        if name in self._programs.constants:
            return "constant", name
        return ("train" if pass_.kind is PassKind.TRAIN else "evaluate"), name

    def _edges(self, table: str) -> Any:
        return self._partition.out_edges if table.startswith("backward") else self._partition.in_edges

    def _allocate(self, group: Group, name: str) -> None:
        own, is_table = self._partition.num_own, name.startswith(TABLES)
        rows = own + (self._edges(name).num_ghosts if is_table else 0)
        width = tensor_width(self._programs.model, name)
        dtype = np.dtype(np.uint16 if is_rounded(self._programs.model, name) else CONSTANT_TYPES.get(name, self.dtype))
        stored_width = row_stride(name, width * dtype.itemsize) // dtype.itemsize
        self._arrays[group, name] = aligned.zeros((rows, stored_width), dtype)[:, :width]
        if is_table:
            self._locks[group, name] = TableLock()
            self._epochs[group, name] = np.zeros(self._partition.book.num_intervals, np.int64)
