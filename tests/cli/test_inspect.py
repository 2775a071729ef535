"""`dorylus inspect`: words, JSON, a page, and an exit code that says whether a training would start."""

import html.parser
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from tests.graph_server.datasets.folders import write_folder
from tests.local_cloud.jobs import MY_GRAPH


def inspect(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["inspect", *arguments], catch_exceptions=False)


def test_cora_in_words():
    done = inspect("cora")
    lines = done.stdout.splitlines()
    assert (done.exit_code, done.stderr) == (0, "")
    assert lines[0] == "cora: gnn_benchmark, 2,708 vertices, 10,556 edges, 1,433 features, 7 classes"
    assert "  trained on         10,556, undirected" in lines
    assert "  components         78, the largest of 2,485 vertices" in lines
    assert "  class 1     180, 20 / 29 / 70 train / valid / test" in lines
    assert "note  5127 reverse edges are added to 5429 edges" in lines
    assert "  option: dataset.directed: true  (--directed true)" in lines
    assert lines[-1] == "a training would start"
    time = lines.index("time, as estimated")
    assert lines[time + 1].startswith("  an epoch    0.")
    assert re.search(r" s: gcn, 2 layers, hidden 16, 2 intervals on \d+ cores? here$", lines[time + 1])
    assert lines[time + 3] == "  rates       those of dorylus plan, assumed and not measured; evaluations come on top"


def test_a_histogram_of_in_degrees():
    lines = inspect("cora").stdout.splitlines()
    begin = lines.index("vertices by in-degree") + 1
    bars = [line.split() for line in lines[begin : begin + 9]]
    assert [bar[0] for bar in bars] == ["0", "1", "2-3", "4-7", "8-15", "16-31", "32-63", "64-127", "128-255"]
    assert sum(int(bar[1].replace(",", "")) for bar in bars) == 2708
    marks = [len(bar[2]) if len(bar) > 2 else 0 for bar in bars]
    assert (marks[0], marks[2], marks[-1]) == (0, 40, 1)


def test_a_refused_dataset_says_why_and_which_flag_helps():
    done = inspect(MY_GRAPH)
    lines = done.stdout.splitlines()
    assert done.exit_code == 1
    assert "  option: dataset.directed: false  (--directed false)" in lines
    assert lines[-1].startswith("a training would be refused: the file does not say whether edges go both ways")
    assert inspect(MY_GRAPH, "--directed", "false").exit_code == 0


def test_a_job_spec_names_its_dataset(tmp_path: Path):
    write_folder(tmp_path / "ring")
    (tmp_path / "job.yaml").write_text(f"dataset: {tmp_path / 'ring'}\nmodel: {{name: gat}}\n")
    done = inspect(str(tmp_path / "job.yaml"))
    assert done.exit_code == 0
    assert "(gat, 2 layers, hidden" in done.stdout


def test_json():
    done = inspect("cora", "--json")
    found = json.loads(done.stdout)
    assert found["format"] == "gnn_benchmark"
    assert (found["num_nodes"], found["num_edges"], found["num_features"], found["num_classes"]) == (
        2708,
        10556,
        1433,
        7,
    )
    assert found["accepted"] is True
    assert {"code", "level", "what", "why", "fix", "options", "rows_of", "rows"} == set(found["findings"][0])
    assert found["memory"]["dataset"] > 0
    low, high = found["time"]["epoch_seconds"]
    assert 0 < low < high


def test_json_of_what_cannot_be_read(tmp_path: Path):
    done = inspect(str(write_folder(tmp_path, edges_csv="0,1\n1\n")), "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["accepted"], found["format"], found["num_nodes"]) == (1, False, "edge_list", None)
    assert "edges.csv:2" in found["findings"][0]["what"]


def test_a_flag_that_is_a_switch_is_shown_as_one(tmp_path: Path):
    folder = write_folder(tmp_path, edges_csv="0,1\n1,0\n7,1\n")
    assert "  option: dataset.drop_unknown_edges: true  (--drop-unknown-edges)" in inspect(str(folder)).stdout
    assert inspect(str(folder), "--drop-unknown-edges").exit_code == 0


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.linked: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.linked += [name for name, _ in attrs if name in ("src", "href", "onclick", "onload")]
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags(page: str) -> Tags:
    found = Tags()
    found.feed(page)
    assert not found.open
    return found


def test_a_page_that_needs_nothing_else(tmp_path: Path):
    page = tmp_path / "cora.html"
    assert inspect("cora", "--html", str(page)).exit_code == 0
    words = page.read_text(encoding="utf-8")
    found = tags(words)
    assert {"svg", "rect", "table"} <= found.seen
    assert not found.linked
    assert "5127 reverse edges are added" in words
    assert "time, as estimated" in words
    assert words.count("<rect") == 9 + 7


def test_a_label_cannot_write_into_the_page(tmp_path: Path):
    folder = write_folder(tmp_path / "ring", labels_csv="<script>alert(1)</script>\nb\na\nb\n")
    page = tmp_path / "page.html"
    assert inspect(str(folder), "--html", str(page)).exit_code == 0
    assert "script" not in tags(page.read_text(encoding="utf-8")).seen
    assert "&lt;script&gt;" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "words"), [("cora.npz", "the name of a page ends with .html"), ("no/where.html", "there is no folder")]
)
def test_a_page_does_not_take_the_place_of_something_else(tmp_path: Path, name: str, words: str):
    (tmp_path / "cora.npz").write_bytes(b"precious")
    done = inspect("cora", "--html", str(tmp_path / name))
    assert done.exit_code == 2
    assert words in done.stderr
    assert (tmp_path / "cora.npz").read_bytes() == b"precious"


def test_a_flag_that_is_wrong():
    done = inspect("cora", "--nan", "median")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: dataset.nan = median (--nan)")
