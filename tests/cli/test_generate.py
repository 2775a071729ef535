"""`dorylus generate`: a graph that the other commands read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_graph_that_trains():
    sizes = ["--num-vertices", "600", "--num-edges", "4000", "--num-classes", "3", "--num-features", "8"]
    done = CliRunner().invoke(main, ["generate", "made.parquet", *sizes, "--seed", "3"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("made.parquet: 600 vertices, 4,000 edges drawn, ")
    trained = CliRunner().invoke(
        main, ["train", "made.parquet", "--num-epochs", "30", "--in-process", "--quiet", "--cache-dir", "cache"]
    )
    assert trained.exit_code == 0, trained.output
    accuracy = next(line for line in trained.stdout.splitlines() if line.startswith("test accuracy"))
    assert float(accuracy.split()[2]) > 70


def test_another_ending_is_refused():
    done = CliRunner().invoke(main, ["generate", "made.csv"])
    assert done.exit_code == 1
    assert "name it made.parquet" in done.stderr
    assert not list(Path().iterdir())
