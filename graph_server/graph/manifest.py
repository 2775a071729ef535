"""The manifest of a graph folder: what lies in it, and what each file must weigh and hash to.

It is written last: a folder without a manifest is one whose writing was interrupted.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from common.errors import DatasetError
from common.saga.tasks import Task

FORMAT_VERSION, WEIGHTED_VERSION = 1, 2
"""Of a folder whose edges have weights: a program that would not read them must not open it."""
FILE_NAME = "manifest.json"

ClassValue = bool | int | float | str
Plain = bool | int | float | str | None | list["Plain"] | dict[str, "Plain"]


class FileEntry(msgspec.Struct, frozen=True):
    bytes: int
    sha256: str


class CutEntry(msgspec.Struct, frozen=True):
    method: str
    seed: int
    num_intervals: int
    cut_sha256: str
    bounds: tuple[int, ...]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`directed` is what the job spec made of the graph; `symmetric` is measured: in-edges equal out-edges, weights
    included."""

    format_version: int
    name: str
    num_nodes: int
    num_edges: int
    directed: bool
    symmetric: bool
    num_features: int
    feature_dtype: str
    num_classes: int
    """Or outputs, where the task is no multi_class."""
    class_values: tuple[ClassValue, ...]
    train_class_counts: tuple[int, ...]
    """Labelled train entries of each."""
    source_fingerprint: str
    cut: CutEntry
    report: dict[str, object]
    files: dict[str, FileEntry]
    """Relative path -> its size and hash; the manifest itself is not among them."""
    task: Task = "multi_class"

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return self.format_version == WEIGHTED_VERSION


class _Head(msgspec.Struct):
    format_version: int


def plain(value: object) -> Plain:
    """The value in JSON's own types: NumPy scalars and arrays, mappings and sequences are unwrapped.

    Raises TypeError for anything else.
    """
    match value:
        case None | bool() | str():
            return str(value) if isinstance(value, str) else value
        case np.generic() | np.ndarray():
            return plain(value.tolist())
        case int() | float():
            return value
        case Mapping():
            return {str(key): plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry) for entry in value]
    raise TypeError(f"{type(value).__name__} has no place in a manifest")


def encode(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def read(folder: Path) -> Manifest:
    """Raises DatasetError if there is no manifest, if it cannot be read or if its format is another version's."""
    path = folder / FILE_NAME
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DatasetError(
            what=f"{folder} is not a graph folder",
            why=f"it has no {FILE_NAME}: something else, or its writing was interrupted",
            fix="give the folder a name that ends with .dorylus and was written by this program, or cut again",
        ) from None
    try:
        version = msgspec.json.decode(raw, type=_Head).format_version
        if version in (FORMAT_VERSION, WEIGHTED_VERSION):
            return msgspec.json.decode(raw, type=Manifest)
    except msgspec.DecodeError as error:
        raise DatasetError(
            what=f"{path} cannot be read", why=str(error), fix="delete the graph folder; it is built again"
        ) from None
    raise DatasetError(
        what=f"{folder} has format_version {version}",
        why=f"this program reads format_version {FORMAT_VERSION} and {WEIGHTED_VERSION}",
        fix="cut the dataset again with this program",
    )
