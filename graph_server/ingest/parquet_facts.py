"""What a graph's Parquet files say besides their rows, in the metadata of the table of edges.

A table cannot say whether its edges go both ways, whether they are a set, and how its features are usually normalised.
Files that Dorylus has written say it, so that they are read like the file they come from.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from graph_server.ingest.raw_graph import RawGraph, damaged

KEY = b"dorylus"


class ParquetFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    edges_are_a_set: bool = False
    undirected: bool | None = None
    usual_normalization: Literal["none", "row", "standard"] = "none"


def facts_of(raw: RawGraph) -> dict[bytes, bytes]:
    """As metadata of a table."""
    facts = {
        "edges_are_a_set": raw.edges_are_a_set,
        "undirected": raw.undirected,
        "usual_normalization": raw.usual_normalization,
    }
    return {KEY: msgspec.json.encode(facts)}


def read_facts(metadata: Mapping[bytes, bytes] | None, path: Path) -> ParquetFacts:
    """Those of a file of anybody else say nothing. Raises DatasetError for what is not as we write it."""
    if not metadata or KEY not in metadata:
        return ParquetFacts()
    try:
        return msgspec.json.decode(metadata[KEY], type=ParquetFacts)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged(path, f"its metadata {KEY.decode()!r}: {error}") from error
