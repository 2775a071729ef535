"""The page and the flags are the schema's: nothing is written twice."""

from pathlib import Path

import pytest

from cli.spec_flags import flag_layer, flag_name, flags
from cli.spec_reference import markdown
from common.errors import SpecError
from common.resolve_spec import Layer, resolve
from common.spec_keys import keys

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "job_spec.md"


def test_the_page_is_the_schema():
    assert PAGE.read_text(encoding="utf-8") == markdown(), (
        "run: python -m cli.spec_reference > docs/reference/job_spec.md"
    )


def test_the_page_has_every_key_and_every_flag_and_marks_what_is_not_built():
    page = markdown()
    assert [key.dotted for key in keys().values() if f"| `{key.leaf}` |" not in page] == []
    assert [flag.name for flag in flags() if f"`{flag.name}`" not in page] == []
    row = next(line for line in page.splitlines() if line.startswith("| `spot`"))
    assert row.endswith("*In this version only `false`.* |")


def test_each_row_of_the_tables_has_five_cells():
    tables = markdown().split("## Aliases")[0]
    rows = [line for line in tables.splitlines() if line.startswith("| `")]
    assert len(rows) == len(keys())
    assert {line.replace("\\|", "").count("|") for line in rows} == {6}


@pytest.mark.parametrize(
    ("dotted", "name"),
    [
        ("name", "--name"),
        ("training.num_epochs", "--num-epochs"),
        ("dataset.path", "--dataset"),
        ("model.name", "--model"),
        ("backend.name", "--backend"),
        ("output.path", "--output"),
        ("dataset.split.train", "--split-train"),
        ("version", None),
    ],
)
def test_the_name_of_a_flag(dotted, name):
    assert flag_name(dotted) == name


def test_every_key_but_the_version_has_one_flag_of_its_own():
    names = [flag.name for flag in flags()]
    assert len(set(names)) == len(names)
    assert [flag.dotted_key for flag in flags()] == [dotted for dotted in keys() if dotted != "version"]
    assert all(flag.help for flag in flags())
    # Flags of the tool itself, and the `--no-` forms, must stay free.
    negated = {f"--no-{flag.name[2:]}" for flag in flags() if flag.type == "boolean"}
    assert not set(names) & (negated | {"--run-dir", "--json", "--quiet", "--resume", "--version", "--help"})


def test_the_type_of_a_flag():
    by_name = {flag.name: flag for flag in flags()}
    assert by_name["--hoist"].type == "boolean"
    assert by_name["--directed"].choices == ("auto", "true", "false")
    assert by_name["--optimizer"].choices == ("sgd", "adam", "adamw")
    assert by_name["--lr"].type == "text"
    assert by_name["--spot"].help.endswith("(not in this version)")
    assert "not in this version" not in by_name["--metric"].help + by_name["--max-restarts"].help


def test_flags_become_a_layer_that_the_schema_reads():
    given = {
        "dataset.path": "cora",
        "dataset.split.train": "0.5",
        "model.hidden_size": "32,16",
        "training.hoist": False,
        "training.weight_decay": "5e-5",
    }
    resolved = resolve([flag_layer(given)])
    assert resolved.spec.dataset.split.train == 0.5
    assert resolved.spec.model.hidden_sizes == (32, 16)
    assert resolved.spec.training.hoist is False
    assert resolved.spec.training.weight_decay == 5e-5
    assert resolved.sources["training.weight_decay"] == "--weight-decay"


def test_a_wrong_flag_is_named():
    with pytest.raises(SpecError, match=r"training.lr = x \(--lr\)"):
        resolve([Layer("file", {"dataset": "cora"}), flag_layer({"training.lr": "x"})])
