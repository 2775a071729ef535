"""`dorylus partition`: a report in words, as JSON and as a page, and a graph folder that trains."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def dorylus(*arguments: str):
    return CliRunner().invoke(main, list(arguments))


def test_a_report_and_a_folder_that_trains():
    done = dorylus(
        "partition", "cora", "cut.dorylus", "--num-intervals", "8", "--num-graph-servers", "2", "--html", "p.html"
    )
    assert done.exit_code == 0, done.output
    lines = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert lines["graph"].strip() == "cora: 2,708 vertices, 10,556 edges"
    assert lines["cut"].strip() == "stream, 8 intervals on 2 graph servers"
    page = Path("p.html").read_text()
    assert page.count("<svg") == 5
    assert "8 intervals on 2 graph servers" in page
    assert dorylus("train", "cut.dorylus", "--num-epochs", "2", "--in-process", "--quiet").exit_code == 0


def test_json_alone_on_stdout():
    done = dorylus(
        "partition", "cora", "--num-intervals", "4", "--num-graph-servers", "3", "--method", "fennel", "--json"
    )
    report = json.loads(done.stdout)
    assert (report["method"], report["num_intervals"], len(report["server_bytes"])) == ("fennel", 4, 3)
    assert 1 < report["shares"]["replication"] < 3
    assert not list(Path().iterdir())


def test_a_wrong_limit_is_refused():
    done = dorylus("partition", "cora", "--memory-limit", "lots")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "fix: write 2GB, 500MB or 2000000000" in done.stderr
