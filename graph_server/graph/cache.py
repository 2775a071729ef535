"""Graph folders are built once: the key is everything that decides what is in them.

Content and dataset options (the dataset's fingerprint), the cut's options and the format's version. Where the cache
lies is an argument; `default_cache_dir` is the user's own.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from platformdirs import user_cache_path

from common.errors import DatasetError
from graph_server.graph.folder_reader import SUFFIX, GraphFolder
from graph_server.graph.manifest import FORMAT_VERSION, plain


def default_cache_dir() -> Path:
    return user_cache_path("dorylus")


def cache_key(dataset_fingerprint: str, cut_options: Mapping[str, object]) -> str:
    """Hex, 32 digits; the order of the options does not matter, their values do."""
    parts = [FORMAT_VERSION, dataset_fingerprint, plain(cut_options)]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:32]


def load_or_build(
    dataset_fingerprint: str,
    cut_options: Mapping[str, object],
    build: Callable[[Path], None],
    *,
    cache_dir: Path,
) -> Path:
    """The graph folder of this dataset and cut; `build` writes it to the path it is given, if it is not there.

    A damaged folder (missing or truncated files) is built again. Raises DatasetError if what `build` wrote is damaged.
    """
    path = cache_dir / "graphs" / f"{cache_key(dataset_fingerprint, cut_options)}{SUFFIX}"
    if not _is_whole(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        build(path)
        GraphFolder.open(path)
    return path


def _is_whole(path: Path) -> bool:
    try:
        GraphFolder.open(path)
    except DatasetError:
        return False
    return True
