"""Reading, converting and cutting a large graph: speed and memory, beside pandas, PyG and DGL, METIS and chance.

    python benchmarks/ingest.py [--quick] [--edges N] [--peers FOLDER] [--json FILE]

A generated graph of 100 million edges (--quick: 2 million), as a text of edges and as Parquet. Every figure is of a
process of its own: seconds of the work without the start of Python, and its largest resident memory. PyG's and DGL's
readers get the first million edges of the text (they hold Python objects), ours the same once more. METIS holds the
graph in memory and is asked on the first two million edges' graph. Who is not set up (`make peers`) has no figure.

Goals: the streaming cut of the whole stays below 2 GB and cuts at most half of what chance cuts; on the small graph at
most 1.3 of METIS; text is read at least as fast as by each peer.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from graph_server.generate.recipe import Recipe, edges_of, pieces
from graph_server.generate.write import generate

ROOT = Path(__file__).resolve().parents[1]
EDGES, QUICK_EDGES, PEER_EDGES = 100_000_000, 2_000_000, 1_000_000
DEGREE, FEATURES, INTERVALS, SERVERS = 50, 8, 64, 4
LIMIT = "1.2GB"
"""Of --memory-limit: what lies beside it, mapped files above all, has to fit below 2 GB."""
BELOW_BYTES = 2e9
SECONDS = 3600

_TAIL = "\nprint(json.dumps([time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))"
_HEAD = "import json, resource, sys, time\nfrom pathlib import Path\npath = Path(sys.argv[1])\n"
READERS = {
    "dorylus": "from graph_server.ingest.edge_text import read_edges\n{began}\nread_edges(path)",
    "pandas": "import pandas\n{began}\npandas.read_csv(path, sep=' ', header=None, dtype='int64').to_numpy()",
    "pyg": "import torch\nfrom torch_geometric.io import read_txt_array\n{began}\n"
    "read_txt_array(str(path), sep=' ', dtype=torch.long)",
    "dgl": "import dgl\n{began}\ndgl.data.CSVDataset(str(path), force_reload=True)",
}
PYTHON = {"pandas": "dgl", "pyg": "pyg", "dgl": "dgl"}
"""In whose environment a peer lives."""


@dataclass(frozen=True)
class Row:
    """None: not set up, or it failed. share_cut: of the edges, between graph servers."""

    what: str
    who: str
    num_edges: int
    num_bytes: int
    seconds: float | None = None
    peak_bytes: int | None = None
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


def read_by(who: str, path: Path, peers: Path, *, num_edges: int, num_bytes: int) -> Row:
    row = Row("read text", who, num_edges, num_bytes)
    python = Path(sys.executable) if who == "dorylus" else peers / PYTHON[who] / "bin" / "python"
    code = _HEAD + READERS[who].format(began="began = time.perf_counter()") + _TAIL
    found = _run([str(python), "-c", code, str(path)]) if python.exists() else None
    if found is None:
        return row
    seconds, peak = json.loads(found.splitlines()[-1])
    return Row(row.what, who, num_edges, num_bytes, seconds, peak)


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
    return Row(what, method, num_edges, size, report["seconds"], report["peak_rss_bytes"], cut)


def convert(made: Path, num_edges: int) -> Row:
    """Read whole, and written again as Parquet."""
    size = sum(file.stat().st_size for file in made.iterdir())
    code = (
        _HEAD + "from local_cloud.convert import convert\nfrom cli.spec_flags import flag_layer\n"
        "out = path.with_name('again.parquet')\n"
        "began = time.perf_counter()\nconvert(str(path), out, flag_layer({}), Path.cwd())"
    )
    found = _run([sys.executable, "-c", code + _TAIL, str(made)])
    if found is None:
        return Row("convert parquet", "dorylus", num_edges, size)
    seconds, peak = json.loads(found.splitlines()[-1])
    return Row("convert parquet", "dorylus", num_edges, size, seconds, peak)


def _run(command: list[str]) -> str | None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=SECONDS, check=False)
    if done.returncode:
        Console(stderr=True).print(f"{command[0]} failed: {done.stderr.strip()[-300:]}", markup=False)
        return None
    return done.stdout


def measure(num_edges: int, peers: Path, folder: Path) -> list[Row]:
    made, text = recipe(num_edges), folder / "edges.txt"
    write_text(made, text)
    whole = {"num_edges": num_edges, "num_bytes": text.stat().st_size}
    rows = [read_by(who, text, peers, **whole) for who in ("dorylus", "pandas")]
    first = first_lines(text, min(PEER_EDGES, num_edges), folder / "first.txt")
    part = {"num_edges": min(PEER_EDGES, num_edges), "num_bytes": first.stat().st_size}
    rows += [read_by(who, first, peers, **part) for who in ("dorylus", "pyg")]
    rows.append(read_by("dgl", write_dgl(first, folder / "dgl"), peers, **part))
    text.unlink()
    tables, small = folder / "made.parquet", folder / "small.parquet"
    generate(made, tables)
    generate(recipe(min(num_edges, QUICK_EDGES)), small)
    if num_edges <= 10 * QUICK_EDGES:  # it holds the graph
        rows.append(convert(tables, num_edges))
    rows += [partition_by(method, tables, num_edges, limit=LIMIT) for method in ("stream", "fennel", "hash")]
    few = min(num_edges, QUICK_EDGES)
    return rows + [partition_by(method, small, few, limit=None) for method in ("stream", "fennel", "metis", "hash")]


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
    said = {
        "peak bytes of the streaming cut": Goal(peak, BELOW_BYTES, at_most=True),
        "edges cut, of those that chance cuts": Goal(ratio(shares[0]["stream"], shares[0]["hash"]), 0.5, at_most=True),
        "edges cut, of those that METIS cuts": Goal(ratio(shares[1]["stream"], shares[1]["metis"]), 1.3, at_most=True),
    }
    for who in PYTHON:
        peer = one("read text", who)
        ours = one("read text", "dorylus", peer.num_edges) if peer else None
        said[f"text, times {who}"] = Goal(ratio(ours.speed if ours else None, peer.speed if peer else None), 1.0)
    return said


def show(rows: list[Row], said: dict[str, Goal]) -> None:
    table = Table(title="reading and cutting")
    for column in ("work", "by", "million edges", "MB/s", "s", "peak MB", "edges cut, %"):
        table.add_column(column, justify="left" if column in ("work", "by") else "right")
    for row in rows:
        figures = (
            row.speed,
            row.seconds,
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
    given = parser.parse_args()
    num_edges = given.edges or (QUICK_EDGES if given.quick else EDGES)
    with tempfile.TemporaryDirectory(prefix="ingest-") as folder:
        rows = measure(num_edges, given.peers, Path(folder))
    said = goals(rows)
    show(rows, said)
    write(given.json, said, [{**row.__dict__, "mb_per_second": row.speed} for row in rows])


if __name__ == "__main__":
    main()
