"""The text of a job spec: what YAML and JSON make of it, with lines, and what is refused."""

import contextlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common import spec_file
from common.errors import SpecError

BOTH = pytest.mark.parametrize("name", ["job.yaml", "job.json"])


def refusal(text: str, name: str = "job.yaml") -> str:
    with pytest.raises(SpecError) as caught:
        spec_file.parse(text, name)
    return str(caught.value)


def only(text: str) -> object:
    return spec_file.parse(f"key: {text}", "job.yaml")[0]["key"]


def test_yaml_gives_values_and_lines():
    values, lines = spec_file.parse("# a job\ndataset: cora\ntraining:\n  lr: 0.1\n\n  seed: 3\n", "job.yaml")
    assert values == {"dataset": "cora", "training": {"lr": 0.1, "seed": 3}}
    assert lines == {"dataset": 2, "training": 3, "training.lr": 4, "training.seed": 6}


def test_json_gives_values_and_lines():
    text = '{\n\t"dataset": "cora",\n\t"model": {"hidden_size": [32, 16],\n"dropout": 5e-1}\n}\n'
    values, lines = spec_file.parse(text, "job.json")
    assert values == {"dataset": "cora", "model": {"hidden_size": [32, 16], "dropout": 0.5}}
    assert lines == {"dataset": 2, "model": 3, "model.hidden_size": 3, "model.dropout": 4}


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)))
def test_json_is_read_as_python_reads_it(values):
    assert spec_file.parse(json.dumps(values, indent=1), "job.json")[0] == values
    assert spec_file.parse(json.dumps(values, ensure_ascii=False), "job.json")[0] == values


@BOTH
def test_a_key_that_stands_twice_is_refused_with_both_lines(name):
    assert refusal('{"training": {"lr": 1,\n"seed": 0,\n"lr": 2}}', name) == (
        f"{name}:3: training.lr stands twice\n"
        "  why: it is on line 1 and on line 3, and only one can count\n"
        "  fix: remove one of them"
    )
    assert "dataset stands twice" in refusal('{"dataset": "a", "dataset": "b"}', name)
    assert "a.0.b stands twice" in refusal('{"a": [{"b": 1, "b": 1}]}', name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", "1e-3"),
        ("5e-4", "5e-4"),
        ("1.5e-3", 0.0015),
        ("010", "010"),
        ("0x10", "0x10"),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("1:30.5", "1:30.5"),
        ("2024-01-01", "2024-01-01"),
        ("12", 12),
        ("-7", -7),
        ("99999999999999999999", "99999999999999999999"),
        ("0.5", 0.5),
        ("no", False),
        ("Off", False),
        ("on", True),
        ("'no'", "no"),
        ("None", "None"),
        ("null", None),
        ("~", None),
        ("", None),
        ("=", "="),
        ("!!str 5", "5"),
        (".inf", math.inf),
        ("-.INF", "-.INF"),
    ],
)
def test_yaml_guesses_no_number(text, value):
    found = only(text)
    assert found == value
    assert type(found) is type(value)


def test_yaml_nan_is_handed_to_the_schema():
    assert math.isnan(only(".nan"))


def test_anchors_and_merges_work():
    text = "a: &a {lr: 1, seed: 2}\nb: *a\nc: {<<: *a, seed: 3}\nd: {<<: [{lr: 9}, *a]}\n"
    values, lines = spec_file.parse(text, "job.yaml")
    assert values["b"] == {"lr": 1, "seed": 2}
    assert values["c"] == {"lr": 1, "seed": 3}
    assert values["d"] == {"lr": 9, "seed": 2}
    assert lines["c.seed"] == 3
    assert lines["c.lr"] == 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("job.yaml", "", "the top level is nothing"),
        ("job.yaml", "# only\n", "the top level is nothing"),
        ("job.yaml", "- a\n", "the top level is a list"),
        ("job.yaml", "cora", "the top level is a single value"),
        ("job.json", "[1]", "the top level is a list"),
        ("job.json", "null", "the top level is nothing"),
        ("job.yaml", "a: 1\nb: [1,\n", "job.yaml:3: column 1: this is not YAML"),
        ("job.yaml", "a: 1\n\tb: 2\n", "job.yaml:2: column 1: this is not YAML"),
        ("job.yaml", "a: 1\n---\nb: 2\n", "job.yaml:2: column 1: this is not YAML"),
        ("job.yaml", "a: *b\n", "found undefined alias 'b'"),
        ("job.yaml", "a: \x00\n", "this is not YAML"),
        ("job.yaml", "a: !!python/object:os.system x\n", "the tag !!python/object:os.system is not allowed"),
        ("job.yaml", "a: !mine x\n", "job.yaml:1: the tag !mine is not allowed"),
        ("job.yaml", "a: !!binary aGk=\n", "the tag !!binary is not allowed"),
        ("job.yaml", "a: !!set {x}\n", "the tag !!set is not allowed"),
        ("job.yaml", "a: 1\n5: 2\n", "job.yaml:2: the key 5 is not text"),
        ("job.yaml", "no: 2\n", "the key no is not text"),
        ("job.yaml", "[1, 2]: 2\n", "the key a list or mapping is not text"),
        ("job.yaml", "<<: 5\n", "<< takes a mapping"),
        ("job.json", '{"a": NaN}', "job.json:1: NaN is not JSON"),
        ("job.json", '{\n"a": -Infinity}', "job.json:2: -Infinity is not JSON"),
        ("job.json", '{"a": 1,}', "job.json:1: column 9: this is not JSON"),
        ("job.json", '{"a" 1}', "expected :"),
        ("job.json", '{"a": 1 "b": 2}', "expected ,"),
        ("job.json", "{a: 1}", 'expected "'),
        ("job.json", '{"a": 1} x', "more text after the end"),
        ("job.json", '{"a": [1', "expected ,"),
        ("job.json", "", "this is not JSON"),
        ("job.json", '{"a": ' + "1" * 5000 + "}", "a number of too many digits"),
        ("job.json", '{"a": "\n"}', "Invalid control character"),
    ],
)
def test_what_is_refused(name, text, said):
    assert said in refusal(text, name)


@BOTH
def test_deep_nesting_is_refused(name):
    assert "more than 20 levels" in refusal('{"a": ' + "[" * 30 + "]" * 30 + "}", name)
    assert "more than 20 levels" in refusal('{"a": ' + "[" * 3000 + "]" * 3000 + "}", name)


def test_aliases_cannot_explode_or_turn_in_a_circle():
    bomb = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    assert "aliases make more than 100,000 values" in refusal(bomb)
    assert "more than 20 levels" in refusal("a: &a {b: *a}\n")


def assert_mapping_or_refusal(text: str, name: str) -> None:
    """Any other exception than SpecError fails the test that calls this."""
    for whole in (text, f"dataset: {text}", f'{{"dataset": {text}}}'):
        with contextlib.suppress(SpecError):
            values, lines = spec_file.parse(whole, name)
            assert set(values) <= set(lines)


@BOTH
@given(text=st.text())
@example(text='"\\UFFFFFFFF"')
@example(text="%YAML 1.99\n---\n")
@example(text="? - a\n")
@example(text="&a [*a]")
def test_any_text_is_a_mapping_or_a_refusal(name, text):
    assert_mapping_or_refusal(text, name)


@given(st.text(alphabet="ab: \n-[]{}&*!<?|>'\"#,%1.e~\\\t"))
def test_any_yaml_like_text_is_a_mapping_or_a_refusal(text):
    assert_mapping_or_refusal(text, "job.yaml")


def test_read_says_what_is_wrong_with_the_file(tmp_path: Path):
    with pytest.raises(SpecError, match="cannot be read"):
        spec_file.read(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        spec_file.read(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"dataset: caf\xe9\n")
    with pytest.raises(SpecError, match="is not UTF-8 text\n  why: byte 12"):
        spec_file.read(tmp_path / "latin.yaml")
    (tmp_path / "big.yaml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(SpecError, match="has 1,000,001 bytes\n  why: a job spec has at most 1,000,000"):
        spec_file.read(tmp_path / "big.yaml")


def test_read_skips_a_byte_order_mark_and_names_the_file(tmp_path: Path):
    (tmp_path / "job.yml").write_bytes(b"\xef\xbb\xbfdataset: cora\n")
    assert spec_file.read(tmp_path / "job.yml") == ({"dataset": "cora"}, {"dataset": 1})


@pytest.mark.parametrize(
    ("name", "text", "is_one"),
    [
        ("a.yaml", "dataset: cora", True),
        ("a.YML", "model: {}\ndataset: {path: x}", True),
        ("a.json", '{"dataset": "cora"}', True),
        ("a.json", '{"nodes": {"dataset": 1}}', False),
        ("a.json", "[1, 2]", False),
        ("a.yaml", "datasets: cora", False),
        ("a.txt", "dataset: cora", False),
        ("a.yaml", "dataset: [cora", True),
        ("a.json", '{"dataset": "cora",}', True),
        ("a.yaml", "nodes: [1", False),
    ],
)
def test_a_job_spec_has_a_dataset_at_its_top(tmp_path: Path, name, text, is_one):
    (tmp_path / name).write_text(text)
    assert spec_file.is_job_spec(tmp_path / name) is is_one


def test_a_folder_or_nothing_is_no_job_spec(tmp_path: Path):
    (tmp_path / "a.yaml").mkdir()
    assert not spec_file.is_job_spec(tmp_path / "a.yaml")
    assert not spec_file.is_job_spec(tmp_path / "b.yaml")
