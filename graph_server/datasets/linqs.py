"""LINQS citation text: `<name>.content` and `<name>.cites`.

    .content     id, one number per word, label; apart by tabs or blanks
    .cites       cited paper, citing paper: the edge goes from the second to the first

Citations are a set, and directed; the user says whether they count both ways. CiteSeer cites papers that are not in
its .content: `drop_unknown_edges` leaves those out.

Source: Sen et al. 2008 (AI Magazine 29), and the README of the data.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.csv

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.arrow_columns import text_values
from graph_server.ingest.defaults import CITATION_GRAPHS
from graph_server.ingest.edge_rows import edge_rows
from graph_server.ingest.edge_text import read_edges
from graph_server.ingest.ids import parse_ids
from graph_server.ingest.node_index import unique_index
from graph_server.ingest.number_text import line_refusal
from graph_server.ingest.raw_graph import RawGraph, damaged
from graph_server.ingest.streams import open_unpacked
from graph_server.ingest.text import read_head

LOOKS_FOR = "LINQS: <name>.content and <name>.cites in one folder"
DEFAULTS = CITATION_GRAPHS

_LONGEST_LINE = 1 << 20


def detect(path: Path) -> bool:
    """A folder that holds such a pair, or one file of a pair."""
    return bool(_stems(path))


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`options.drop_unknown_edges` leaves out citations of papers that are not there."""
    stems = _stems(path)
    if len(stems) != 1:
        raise DatasetError(
            what=f"{path} holds {len(stems)} LINQS datasets: {', '.join(stem.name for stem in stems)}",
            why="one job trains on one dataset",
            fix=f"name a file of the one you mean, such as {stems[0]}.content",
        )
    content, cites = (stems[0].with_name(f"{stems[0].name}.{ending}") for ending in ("content", "cites"))
    table = _content(content)
    lines = np.arange(1, table.num_rows + 1)
    ids = parse_ids(text_values(table.column(0), f"{content}: ids").tolist(), lines.tolist(), content)
    index = unique_index(ids, lines, content, negative=options.negative_ids)
    edges = read_edges(cites, as_text=index.is_text)
    turned = replace(edges, sources=edges.targets, targets=edges.sources)
    sources, targets, notes = edge_rows([turned], index, options.drop_unknown_edges)
    return RawGraph(
        format="linqs",
        node_ids=index.node_ids,
        sources=sources,
        targets=targets,
        features=np.column_stack([column.to_numpy() for column in table.columns[1:-1]]),
        labels=text_values(table.column(table.num_columns - 1), f"{content}: labels"),
        edges_are_a_set=True,
        usual_normalization="row",
        defaults=DEFAULTS,
        notes=notes,
    )


def _stems(path: Path) -> list[Path]:
    """Paths without the ending, of which both files are there."""
    if path.is_dir():
        found = [file.with_suffix("") for file in sorted(path.glob("*.content"))]
    else:
        found = [path.with_suffix("")] if path.suffix in (".content", ".cites") else []
    return [stem for stem in found if all(Path(f"{stem}.{ending}").is_file() for ending in ("content", "cites"))]


def _content(file: Path) -> pyarrow.Table:
    """id as text, words as float32, label as text."""
    line = next(iter(read_head(file, _LONGEST_LINE).splitlines()), b"")
    separator = "\t" if b"\t" in line else " "
    names = [str(column) for column in range(line.count(separator.encode()) + 1)]
    if len(names) < 3:
        raise damaged(file, f"its first line has {len(names)} fields; needed: id, words, label")
    kinds = dict.fromkeys(names, pyarrow.float32()) | dict.fromkeys((names[0], names[-1]), pyarrow.large_string())
    try:
        with open_unpacked(file) as stream:
            return pyarrow.csv.read_csv(
                stream,
                pyarrow.csv.ReadOptions(column_names=names, use_threads=False, block_size=16 << 20),
                pyarrow.csv.ParseOptions(delimiter=separator, quote_char=False),
                pyarrow.csv.ConvertOptions(column_types=kinds),
            )
    except pyarrow.ArrowInvalid as error:
        raise line_refusal(file, error) from error
    except (OSError, pyarrow.ArrowException) as error:
        raise damaged(file, error) from error


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    content = "31\t1\t0\tTheory\n7\t0\t1\tAgents\n8\t1\t1\tTheory\n9\t1\t0\tAgents\n"
    (folder / "ring.content").write_text(content, encoding="utf-8")
    (folder / "ring.cites").write_text("7\t31\n8\t7\n9\t8\n31\t9\n", encoding="utf-8")
    return folder
