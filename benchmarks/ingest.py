"""Reading, converting and cutting a large graph: speed and memory, beside pandas, PyG and DGL, METIS and chance.

    python benchmarks/ingest.py [--quick] [--only read convert cut] [--edges N] [--peers FOLDER] [--json FILE]

A generated graph of 100 million edges (--quick: 2 million), as a text of edges and as Parquet. Every figure is of a
process of its own: seconds of the work without the start of Python, and its largest resident memory. PyG's and DGL's
readers get the first million edges of the text (they hold Python objects), ours the same once more. Ours gives rows of
vertices from Parquet, pandas the ids as they stand. To be a graph folder a text has features and labels beside it.
METIS holds the graph in memory and is asked on the first two million edges' graph, which is converted in memory, too.
Who is not set up (`make peers`) has no figure.

Goals: converting and the streaming cut of the whole stay below 2 GB; the cut cuts at most half of what chance cuts; on
the small graph at most 1.3 of METIS; text is read at least as fast as by each peer, by the processor's time, for
others may use the machine.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from graph_server.generate.recipe import Recipe, edges_of, features_of, labels_of, pieces
from graph_server.generate.write import generate

ROOT = Path(__file__).resolve().parents[1]
EDGES, QUICK_EDGES, PEER_EDGES = 100_000_000, 2_000_000, 1_000_000
DEGREE, FEATURES, INTERVALS, SERVERS = 50, 8, 64, 4
LIMIT = "1.2GB"
"""Of --memory-limit: what lies beside it, mapped files above all, has to fit below 2 GB."""
BELOW_BYTES = 2e9
SECONDS = 3600

_HEAD = "import json, resource, sys, time\nfrom pathlib import Path\npath = Path(sys.argv[1])\n"
_BEGIN = "began, used = time.perf_counter(), time.process_time()"
_TAIL = (
    "\nseconds, used = time.perf_counter() - began, time.process_time() - used\n"
    "print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, used]))"
)
READERS = {
    "read text": {
        "dorylus": "from graph_server.ingest.edge_text import read_edges\n{began}\nread_edges(path)",
        "pandas": "import pandas\n{began}\npandas.read_csv(path, sep=' ', header=None, dtype='int64').to_numpy()",
        "pyg": "import torch\nfrom torch_geometric.io import read_txt_array\n{began}\n"
        "read_txt_array(str(path), sep=' ', dtype=torch.long)",
        "dgl": "import dgl\n{began}\ndgl.data.CSVDataset(str(path), force_reload=True)",
    },
    "read parquet": {
        "dorylus": "from common.job_spec import DatasetSpec\nfrom graph_server.datasets.parquet import read\n{began}\n"
        "read(path, DatasetSpec(path=str(path)))",
        "pandas": "import pandas\n{began}\npandas.read_parquet(path).to_numpy()",
    },
}
PYTHON = {"pandas": "pyg", "pyg": "pyg", "dgl": "dgl"}
"""In whose environment a peer lives."""
OURS, WORK = ("dorylus", "pandas"), ("read", "convert", "cut")


@dataclass(frozen=True)
class Row:
    """None: not set up, failed, or not known. share_cut: of the edges, between graph servers."""

    what: str
    who: str
    num_edges: int
    num_bytes: int
    seconds: float | None = None
    peak_bytes: int | None = None
    cpu_seconds: float | None = None
    share_cut: float | None = None

    @property
    def speed(self) -> float | None:
        """MB/s"""
        return None if not self.seconds else self.num_bytes / 1e6 / self.seconds


def recipe(num_edges: int) -> Recipe:
    return Recipe(
        kind="blocks", num_vertices=max(1000, num_edges // DEGREE), num_edges=num_edges, num_features=FEATURES
    )


def write_text(made: Recipe, path: Path) -> None:
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    schema = pyarrow.schema([("source", pyarrow.int64()), ("target", pyarrow.int64())])
    with pyarrow.csv.CSVWriter(path, schema, write_options=options) as file:
        for number, first, last in pieces(made.num_edges):
            sources, targets = edges_of(made, number, last - first)
            file.write_table(pyarrow.table({"source": sources, "target": targets}))


def write_dgl(text: Path, folder: Path) -> Path:
    """The same edges as DGL's CSVDataset wants them."""
    folder.mkdir()
    names = pyarrow.csv.ReadOptions(column_names=["src_id", "dst_id"])
    edges = pyarrow.csv.read_csv(text, names, pyarrow.csv.ParseOptions(delimiter=" "))
    top = max(pyarrow.compute.max(edges[name]).as_py() for name in edges.column_names)
    pyarrow.csv.write_csv(edges, folder / "edges.csv")
    pyarrow.csv.write_csv(pyarrow.table({"node_id": list(range(top + 1))}), folder / "nodes.csv")
    (folder / "meta.yaml").write_text(
        "dataset_name: bench\nedge_data:\n- file_name: edges.csv\nnode_data:\n- file_name: nodes.csv\n"
    )
    return folder


def first_lines(text: Path, count: int, path: Path) -> Path:
    with text.open("rb") as lines, path.open("wb") as out:
        for _ in range(count):
            out.write(lines.readline())
    return path


def write_folder(text: Path, made: Recipe, folder: Path) -> Path:
    """A text of edges with features and labels beside it: what a training needs."""
    folder.mkdir()
    (folder / "edges.txt").hardlink_to(text)
    parts = [features_of(made, number, first, last) for number, first, last in pieces(made.num_vertices)]
    np.save(folder / "features.npy", np.concatenate(parts))
    np.save(folder / "labels.npy", labels_of(made, np.arange(made.num_vertices)))
    return folder


def read_by(who: str, path: Path, peers: Path, *, num_edges: int, what: str = "read text") -> Row:
    size = path.stat().st_size
    python = Path(sys.executable) if who == "dorylus" else peers / PYTHON[who] / "bin" / "python"
    code = _HEAD + READERS[what][who].format(began=_BEGIN) + _TAIL
    found = _run([str(python), "-c", code, str(path)]) if python.exists() else None
    if found is None:
        return Row(what, who, num_edges, size)
    return Row(what, who, num_edges, size, *json.loads(found.splitlines()[-1]))


def partition_by(method: str, made: Path, num_edges: int, *, limit: str | None, out: Path | None = None) -> Row:
    """limit None: in memory. The graph folder is written too, and kept where `out` says."""
    size = sum(file.stat().st_size for file in made.iterdir())
    shape = ["--num-intervals", str(INTERVALS), "--num-graph-servers", str(SERVERS), "--method", method, "--json"]
    command = [sys.executable, "-m", "cli.main", "partition", str(made), *([str(out)] if out else []), *shape]
    found = _run([*command, *(["--memory-limit", limit] if limit else [])])
    what = "cut in memory" if limit is None else f"cut within {limit}"
    if found is None:
        return Row(what, method, num_edges, size)
    report = json.loads(found)
    cut = report["shares"]["cut_between_servers"]
    return Row(what, method, num_edges, size, report["seconds"], report["peak_rss_bytes"], share_cut=cut)


def convert(source: Path, num_edges: int, *, limit: str | None) -> Row:
    """To a graph folder, each edge once and in both directions; limit None: in memory."""
    kind = "parquet" if source.suffix == ".parquet" else "text"
    size = sum(file.stat().st_size for file in source.iterdir())
    settings = {"dataset.directed": "false", "dataset.dedup": "true", "cut.num_intervals": str(INTERVALS)}
    code = (
        _HEAD + "from local_cloud.convert import convert\nfrom local_cloud.partition import bytes_of\n"
        f"from cli.spec_flags import flag_layer\nlimit = {limit!r} and bytes_of({limit!r})\n"
        f"out = path.with_name('again.dorylus')\n{_BEGIN}\n"
        f"convert(str(path), out, flag_layer({settings!r}), Path.cwd(), memory_bytes=limit)"
    )
    found = _run([sys.executable, "-c", code + _TAIL, str(source)])
    shutil.rmtree(source.with_name("again.dorylus"), ignore_errors=True)
    what = f"convert {kind}" + (f" within {limit}" if limit else " in memory")
    figures = [] if found is None else json.loads(found.splitlines()[-1])
    return Row(what, "dorylus", num_edges, size, *figures)


def _run(command: list[str]) -> str | None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=SECONDS, check=False)
    if done.returncode:
        Console(stderr=True).print(f"{command[0]} failed: {done.stderr.strip()[-300:]}", markup=False)
        return None
    return done.stdout


def measure(num_edges: int, peers: Path, folder: Path, only: Sequence[str] = WORK) -> list[Row]:
    few = min(num_edges, QUICK_EDGES)
    large, small = recipe(num_edges), recipe(few)
    rows = measure_text(large, peers, folder, only)
    tables, less = folder / "made.parquet", folder / "small.parquet"
    generate(large, tables)
    generate(small, less)
    if "read" in only:
        edges = tables / "edges.parquet"
        rows += [read_by(who, edges, peers, num_edges=num_edges, what="read parquet") for who in OURS]
    if "convert" in only:
        write_text(small, folder / "small.txt")
        rows.append(convert(tables, num_edges, limit=LIMIT))
        in_memory = (write_folder(folder / "small.txt", small, folder / "small"), less)
        rows += [convert(made, few, limit=None) for made in in_memory]
    if "cut" in only:
        rows += [partition_by(method, tables, num_edges, limit=LIMIT) for method in ("stream", "fennel", "hash")]
        rows += [partition_by(method, less, few, limit=None) for method in ("stream", "fennel", "metis", "hash")]
    return rows


def measure_text(made: Recipe, peers: Path, folder: Path, only: Sequence[str]) -> list[Row]:
    text, num_edges, few = folder / "edges.txt", made.num_edges, min(made.num_edges, PEER_EDGES)
    rows: list[Row] = []
    write_text(made, text)
    if "read" in only:
        rows += [read_by(who, text, peers, num_edges=num_edges) for who in OURS]
        first = first_lines(text, few, folder / "first.txt")
        rows += [read_by(who, first, peers, num_edges=few) for who in ("dorylus", "pyg")]
        found = read_by("dgl", write_dgl(first, folder / "dgl"), peers, num_edges=few)
        rows.append(replace(found, num_bytes=first.stat().st_size))
    if "convert" in only:
        with_vertices = write_folder(text, made, folder / "text")
        rows.append(convert(with_vertices, num_edges, limit=LIMIT))
        shutil.rmtree(with_vertices)
    text.unlink()
    return rows


def goals(rows: list[Row]) -> dict[str, Goal]:
    def one(what: str, who: str, num_edges: int | None = None) -> Row | None:
        found = [r for r in rows if r.what == what and r.who == who and num_edges in (None, r.num_edges)]
        return found[0] if found else None

    def ratio(above: float | None, below: float | None) -> float | None:
        return above / below if above is not None and below else None

    large = {who: one(f"cut within {LIMIT}", who) for who in ("stream", "hash")}
    small = {who: one("cut in memory", who) for who in ("stream", "metis")}
    shares = [{who: row.share_cut if row else None for who, row in cuts.items()} for cuts in (large, small)]
    peak = large["stream"].peak_bytes if large["stream"] else None
    converts = {kind: one(f"convert {kind} within {LIMIT}", "dorylus") for kind in ("text", "parquet")}
    said = {
        f"peak bytes of converting {kind}": Goal(row.peak_bytes if row else None, BELOW_BYTES, at_most=True)
        for kind, row in converts.items()
    }
    said |= {
        "peak bytes of the streaming cut": Goal(peak, BELOW_BYTES, at_most=True),
        "edges cut, of those that chance cuts": Goal(ratio(shares[0]["stream"], shares[0]["hash"]), 0.5, at_most=True),
        "edges cut, of those that METIS cuts": Goal(ratio(shares[1]["stream"], shares[1]["metis"]), 1.3, at_most=True),
    }
    for who in PYTHON:
        peer = one("read text", who)
        ours = one("read text", "dorylus", peer.num_edges) if peer else None
        theirs = peer.cpu_seconds if peer else None
        said[f"text, times {who}"] = Goal(ratio(theirs, ours.cpu_seconds if ours else None), 1.0)
    return said


def show(rows: list[Row], said: dict[str, Goal]) -> None:
    table = Table(title="reading, converting and cutting")
    for column in ("work", "by", "million edges", "MB/s", "s", "CPU s", "peak MB", "edges cut, %"):
        table.add_column(column, justify="left" if column in ("work", "by") else "right")
    for row in rows:
        figures = (
            row.speed,
            row.seconds,
            row.cpu_seconds,
            row.peak_bytes and row.peak_bytes / 1e6,
            row.share_cut and 100 * row.share_cut,
        )
        shown = ["-" if value is None else f"{value:,.1f}" for value in figures]
        table.add_row(row.what, row.who, f"{row.num_edges / 1e6:g}", *shown)
    Console().print(table)
    for name, goal in said.items():
        bound = f"{'at most' if goal.at_most else 'at least'} {goal.goal:g}"
        value = "not measured" if goal.value is None else f"{goal.value:.3g}"
        Console().print(f"{name}: {value} ({bound}): {'yes' if goal.holds else 'no'}", highlight=False)


def main() -> None:
    parser = arguments("Reading, converting and cutting a large graph.")
    parser.add_argument("--edges", type=int, metavar="N")
    parser.add_argument("--peers", type=Path, default=ROOT / ".peers", metavar="FOLDER")
    parser.add_argument("--only", nargs="+", choices=WORK, default=WORK, metavar="WORK")
    given = parser.parse_args()
    num_edges = given.edges or (QUICK_EDGES if given.quick else EDGES)
    with tempfile.TemporaryDirectory(prefix="ingest-") as folder:
        rows = measure(num_edges, given.peers, Path(folder), given.only)
    said = goals(rows)
    show(rows, said)
    write(given.json, said, [{**row.__dict__, "mb_per_second": row.speed} for row in rows])


if __name__ == "__main__":
    main()
