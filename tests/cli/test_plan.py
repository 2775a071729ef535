"""`dorylus plan`: a page of words, or JSON."""

import json

import pytest
from click.testing import CliRunner

from cli.main import main


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return ["--cache-dir", str(tmp_path_factory.mktemp("graphs")), "--num-intervals", "8"]


def test_a_page_of_words(cached: list[str]):
    said = CliRunner().invoke(main, ["plan", "cora", *cached, "--instance-type", "r7g.large"])
    assert said.exit_code == 0, said.output
    lines = said.output.splitlines()
    assert "cora: gcn on 2,708 vertices, 10,556 edges; 1 x r7g.large, 100 epochs" in lines
    assert next(line for line in lines if line.startswith("  r7g.large ")).split()[1:4] == ["local_cpu", "on", "demand"]
    assert [line for line in lines if line.startswith("Lambda ")]


def test_as_json(cached: list[str]):
    said = CliRunner().invoke(main, ["plan", "cora", *cached, "--json"])
    plan = json.loads(said.stdout)
    assert plan["lambda_pays"] is False
    assert plan["links"]["lambda"]["graph_lambda"] > 0
    assert all(low <= high for option in plan["options"] for low, high in (option["usd"], option["seconds"]))


def test_what_has_no_price_is_refused(cached: list[str]):
    said = CliRunner().invoke(main, ["plan", "cora", *cached, "--instance-type", "c7g.xlarg"])
    assert said.exit_code == 1
    assert "did you mean c7g.xlarge?" in said.stderr
