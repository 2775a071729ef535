"""A graph folder, `NAME.dorylus/`: the relabelled graph as files, one folder per interval.

manifest.json  ids.npy or ids.json  order.npy  interval_edges.npy
intervals/00017/{indptr, sources, features, labels, masks, loops}.npy
intervals/00017/{weights, weight_sums}.npy      where edges have weights

Every id is a global relabelled id, so the deal is not in it, and dealing again maps other folders. A folder is written
beside its place, manifest last, and renamed into it: nobody ever sees half of one.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from common.errors import DatasetError
from graph_server.graph import manifest as manifests
from graph_server.graph.csr import Bools, Indices, Ints, Weights
from graph_server.graph.cut import Cut
from graph_server.graph.manifest import Manifest

SUFFIX = ".dorylus"
INTERVAL_EDGES = "interval_edges.npy"


class IntervalArrays(NamedTuple):
    """indptr [rows + 1] int64 from 0; sources [edges] int32 or int64; features [rows, F] float32; labels [rows] int64
    or, where the task is no multi_class, [rows, outputs] float32; masks [rows] uint8; loops [rows] bool: the vertex has
    an edge to itself. All memory-mapped, read-only.
    """

    indptr: Ints
    sources: Indices
    features: npt.NDArray[np.float32]
    labels: npt.NDArray[Any]
    masks: npt.NDArray[np.uint8]
    loops: Bools


def interval_file(interval: int, array: str) -> str:
    """The path of one array, relative to the graph folder."""
    return f"intervals/{interval:05d}/{array}.npy"


@dataclass(frozen=True)
class GraphFolder:
    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path, *, verify: bool = False, only: Collection[str] | None = None) -> "GraphFolder":
        """Read the manifest and look at every file's size, or at that of some; with `verify` also at every byte.

        Raises DatasetError that names the file that is missing, of another size or (verify) changed.
        """
        folder = cls(Path(path), manifests.read(Path(path)))
        for name, fault in folder._faults(folder.manifest.files if only is None else only, verify=verify):
            raise DatasetError(
                what=f"{folder.path / name} is damaged", why=fault, fix="delete the graph folder; it is built again"
            )
        return folder

    @property
    def num_intervals(self) -> int:
        return self.manifest.cut.num_intervals

    @cached_property
    def bounds(self) -> Ints:
        """[num_intervals + 1] int64"""
        return np.array(self.manifest.cut.bounds, np.int64)

    @cached_property
    def ids(self) -> npt.NDArray[Any]:
        """[V] the user's id of each relabelled id: int64, memory-mapped, or str."""
        if "ids.npy" in self.manifest.files:
            return self._load("ids.npy")
        return np.array(json.loads((self.path / "ids.json").read_text(encoding="utf-8")), np.str_)

    @property
    def interval_edges(self) -> Ints:
        """[I, I] int64: in-edges of interval i from interval j."""
        return self._load(INTERVAL_EDGES)

    @property
    def cut(self) -> Cut:
        """The cut as it was made."""
        entry = self.manifest.cut
        return Cut(entry.method, entry.seed, np.asarray(self._load("order.npy")), self.bounds)

    def array(self, interval: int, name: str) -> npt.NDArray[Any]:
        """One array of one interval, memory-mapped: a name of IntervalArrays."""
        return self._load(interval_file(interval, name))

    def weights(self, interval: int) -> Weights | None:
        """[edges] of an interval's in-edges, beside `sources`; memory-mapped. None: every edge counts the same."""
        return self.array(interval, "weights") if self.manifest.weighted else None

    def weight_sums(self, interval: int) -> npt.NDArray[np.float64]:
        """[rows] of the weights of each vertex's in-edges; of a folder whose edges have weights."""
        return self.array(interval, "weight_sums")

    def interval(self, interval: int) -> IntervalArrays:
        """All arrays of one interval. Each holds a file open: take few intervals at a time."""
        return IntervalArrays(*(self.array(interval, name) for name in IntervalArrays._fields))

    def _load(self, name: str) -> npt.NDArray[Any]:
        loaded: npt.NDArray[Any] = np.load(self.path / name, mmap_mode="r", allow_pickle=False)
        return loaded

    def _faults(self, names: Iterable[str], *, verify: bool) -> Iterator[tuple[str, str]]:
        for name in names:
            entry, file = self.manifest.files[name], self.path / name
            size = _size(file)
            if size != entry.bytes:
                yield name, f"it has {size} bytes, the manifest says {entry.bytes}" if size >= 0 else "it is not there"
            elif verify:
                with file.open("rb") as stream:
                    found = file_digest(stream, "sha256").hexdigest()
                if found != entry.sha256:
                    yield name, f"its SHA-256 is {found[:12]}..., the manifest says {entry.sha256[:12]}..."
        if verify and self.cut.sha256 != self.manifest.cut.cut_sha256:
            yield "order.npy", "order and bounds do not hash to cut_sha256"


def _size(file: Path) -> int:
    """In bytes; -1 if there is none. One look, so that a writer who replaces the folder cannot come between two."""
    try:
        return file.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return -1
