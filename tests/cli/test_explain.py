"""`dorylus explain`: the derived program, its widths in letters or numbers, and what a train pass moves."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from common import plugins
from tests.local_cloud.jobs import MY_GRAPH

GCN_PAPER = (
    "Gather0 · ApplyVertex0 · Scatter1 · Gather1 · ApplyVertex1+Loss+∇ApplyVertex1"
    " · ∇Scatter1 · ∇Gather1 · ∇ApplyVertex0"
)
GCN = (
    "(once: Gather0) ApplyVertex0+1 · Scatter1 · Gather1 · ApplyVertex1+Loss+∇ApplyVertex1 · ∇Scatter1 · ∇Gather1"
    " · ∇ApplyVertex1+0"
)
GAT = (
    "ApplyVertex0 · Scatter0 · ApplyEdge0 · Gather0 · ApplyVertex0+1 · Scatter1 · ApplyEdge1 · Gather1"
    " · ApplyVertex1+Loss+∇ApplyVertex1 · ∇Scatter1 · ∇ApplyEdge1 · ∇Gather1 · ∇ApplyVertex1+0"
    " · ∇Scatter0 · ∇ApplyEdge0 · ∇Gather0 · ∇ApplyVertex0"
)


@pytest.fixture(autouse=True)
def own_cache(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DORYLUS_CACHE", str(cache_dir))


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "program"),
    [(["gcn", "--no-hoist", "--no-commute"], GCN_PAPER), (["gcn"], GCN), (["gat", "--num-layers", "2"], GAT)],
)
def test_the_programs_of_the_architecture(arguments: list[str], program: str):
    assert program in explain(*arguments).stdout.splitlines()


def test_widths_in_letters():
    lines = explain("gat").stdout.splitlines()
    assert lines[0] == "gat, 2 layers"
    cells = {line.split("  ")[0]: line.split("  ", 1)[1].split() for line in lines[4:18]}
    assert cells["ApplyVertex0"] == ["hidden0", "[F]", "projected0", "[8H+16]"]
    assert cells["Scatter0"] == ["projected0", "[8H+16]", "source0", "[8H+8]"]
    assert lines[-1] == "widths are per row: F features, H hidden, C classes, and F > H > C is assumed"


def test_every_model_is_listed_and_explained():
    listed = [line.strip() for line in explain().stdout.splitlines() if line.startswith("  ")]
    assert listed == list(plugins.names("common.models"))
    for model in listed:
        assert explain(model).exit_code == 0
        assert explain(model, "--num-layers", "1").exit_code == 0


def test_an_unknown_model():
    done = explain("gcm")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith("fix: did you mean gcn?\n")


def test_numbers_of_a_dataset():
    done = explain("gcn", "--dataset", "cora", "--num-intervals", "12", "--num-graph-servers", "3")
    lines = done.stdout.splitlines()
    assert done.stderr == ""
    assert GCN in lines
    row = next(line.split() for line in lines if line.startswith("ApplyVertex0+1"))
    assert row[:7] == ["ApplyVertex0+1", "-", f"{2708 * 7 * 4:,}", "-", "-", "124.8", "gathered0"]
    assert "  rows out           151,648  given by tensor tasks" in lines
    assert "layer 1 multiplies before it gathers, because 16 > 7; --no-commute undoes that" in lines
    assert "payload of one train pass, in bytes (3 graph servers, 12 intervals; 2,708 vertices, 10,556 edges)" in lines


def test_links_of_the_lambda_backend():
    done = explain(
        "gcn", "--dataset", "cora", "--num-intervals", "12", "--num-graph-servers", "3", "--backend", "lambda"
    )
    lines = done.stdout.splitlines()
    begin = lines.index("of it by link, in bytes (lambda, 12 leases)")
    constants = 2708 * (1433 * 4 + 8 + 1)
    assert lines[begin + 1 : begin + 4] == [
        "  graph-graph               68,656",
        f"  graph-lambda             303,296  and {constants:,} of constants, once",
        "  parameter-lambda       1,107,024",
    ]


def test_json_adds_up():
    done = explain("gin", "--dataset", MY_GRAPH, "--directed", "true", "--num-intervals", "4", "--json")
    found = json.loads(done.stdout)
    payload, costs = found["payload"], [step["cost"] for step in found["steps"] if not step["once"]]
    for kind in ("rows_in", "rows_out", "gradients", "ghosts", "flops"):
        assert sum(cost[kind] for cost in costs) == payload[kind]
    parts = ("rows_in", "rows_out", "weights", "gradients", "ghosts")
    assert sum(payload[kind] for kind in parts) == found["payload_total"]
    on_links = [payload[kind] for kind in ("weights", "gradients", "ghosts")]
    assert sum(found["links"].values()) == sum(on_links), "rows stay where they lie"
    assert payload["ghosts"] == 0
    assert found["graph"]["num_intervals"] == 4


def test_json_without_a_dataset_has_no_numbers():
    found = json.loads(explain("gcn", "--json").stdout)
    assert (found["program"], found["payload"]) == (GCN, None)
    assert found["steps"][0] == {
        "step": "Gather0",
        "once": True,
        "reads": [{"name": "source0", "width": "F"}],
        "writes": [{"name": "gathered0", "width": "F"}],
        "cost": None,
    }


# ---- what the rules save


def costs_of(*arguments: str) -> dict[str, dict[str, object]]:
    found = json.loads(explain(*arguments, "--cost", "--json").stdout)
    return {cost.pop("name"): cost for cost in found}


def test_cost_compares_the_programs_that_the_rules_lead_to():
    found = costs_of("gcn", "--dataset", "cora", "--num-intervals", "4", "--num-graph-servers", "2")
    assert list(found) == ["paper", "hoist", "commute", "hoist and commute"]
    assert found["paper"]["program"] == GCN_PAPER
    assert found["hoist and commute"]["program"] == GCN
    # Per epoch the paper gathers rows of 1433 and of 16, and back rows of 16; with both rules rows of 7 there and back.
    assert found["paper"]["edge_bytes"] == 4 * (10_556 + 2_708) * (1433 + 16 + 16)
    assert found["hoist and commute"]["edge_bytes"] == 4 * (10_556 + 2_708) * (7 + 7)
    assert found["hoist and commute"]["ghost_bytes"] * 16 == found["hoist"]["ghost_bytes"] * 7


def test_cost_as_a_table():
    lines = explain("gcn", "--dataset", "cora", "--num-intervals", "4", "--cost").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "one training epoch", "paper", "hoist", "commute", "hoist and commute"
    ]  # fmt: skip
    assert lines[1].count("100%") == 3, "with one graph server there are no ghosts"


def test_cost_needs_a_dataset():
    result = explain("gcn", "--cost")
    assert result.exit_code == 2
    assert "name one with --dataset" in result.stderr
