"""What a graph's Parquet files say besides their rows, in the metadata of the table of edges.

A table cannot say whether its edges go both ways, whether they are a set, how its features are usually normalised, and
what is learnt of its labels.
Files that Dorylus has written say it, so that they are read like the file they come from.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from common.saga.tasks import Task
from graph_server.ingest.raw_graph import RawGraph, damaged

KEY = b"dorylus"


class ParquetFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    edges_are_a_set: bool = False
    undirected: bool | None = None
    usual_normalization: Literal["none", "row", "standard"] = "none"
    task: Task | None = None


def facts_of(raw: RawGraph) -> dict[bytes, bytes]:
    """As metadata of a table."""
    facts = {name: getattr(raw, name) for name in ParquetFacts.__struct_fields__}
    return metadata_of(ParquetFacts(**facts))


def metadata_of(facts: ParquetFacts) -> dict[bytes, bytes]:
    return {KEY: msgspec.json.encode(facts)}


def read_facts(metadata: Mapping[bytes, bytes] | None, path: Path) -> ParquetFacts:
    """Those of a file of anybody else say nothing. Raises DatasetError for what is not as we write it."""
    if not metadata or KEY not in metadata:
        return ParquetFacts()
    try:
        return msgspec.json.decode(metadata[KEY], type=ParquetFacts)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged(path, f"its metadata {KEY.decode()!r}: {error}") from error
