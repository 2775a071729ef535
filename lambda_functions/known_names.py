"""The names that a spec may mention: of models, formats, backends and bundled graphs.

A file is a plug-in, so names are listed from folders. A deployed job trigger has none of that code: its asset carries
the listing as a file.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from common import plugins

ROOT = Path(__file__).resolve().parents[1]
LISTING = ROOT / "known_names.json"
FOLDERS = {"model": "common.models", "format": "graph_server.datasets", "backend": "graph_server.backends"}
BUNDLED = ROOT / "graph_server" / "datasets" / "bundled"


def known_names(kind: str) -> tuple[str, ...]:
    """kind: model, format, backend or bundled."""
    listed = json.loads(LISTING.read_text(encoding="utf-8")) if LISTING.is_file() else from_folders()
    return tuple(listed[kind])


def from_folders() -> Mapping[str, tuple[str, ...]]:
    bundled = tuple(sorted(path.stem for path in BUNDLED.glob("*.npz")))
    return {kind: plugins.names(package) for kind, package in FOLDERS.items()} | {"bundled": bundled}
