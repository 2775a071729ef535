"""From layers to one spec: who wins, where it came from, and every refusal in words."""

import pytest

from common import spec_file
from common.errors import SpecError
from common.resolve_spec import Layer, ResolvedSpec, dump, refuse_unbuilt, resolve
from common.spec_keys import keys
from common.unbuilt import UNBUILT


def file_layer(text: str, name: str = "job.yaml") -> Layer:
    values, lines = spec_file.parse(text, name)
    return Layer(name, values, lines)


def of_file(text: str) -> ResolvedSpec:
    return resolve([file_layer(text)])


def refusal(*layers: Layer) -> str:
    with pytest.raises(SpecError) as caught:
        resolve(layers)
    return str(caught.value)


def with_cora(text: str) -> str:
    return refusal(file_layer(f"dataset: cora\n{text}"))


CORA = Layer("cora's defaults", {"dataset": "cora"}, is_default=True)


def test_the_later_layer_wins_key_by_key():
    resolved = resolve(
        [
            Layer("defaults of gat", {"model": {"dropout": 0.6, "hidden_size": 8}}, is_default=True),
            Layer("defaults of cora", {"model": {"hidden_size": 16}}, is_default=True),
            file_layer("dataset: cora\nmodel:\n  name: gat\ntraining: {lr: 5e-3, seed: 1}\n"),
            Layer("flags", {"training": {"seed": "2"}}, flags={"training.seed": "--seed"}),
        ]
    )
    assert resolved.spec.model.hidden_size == 16
    assert resolved.spec.training.seed == 2
    assert resolved.spec.training.lr == 0.005
    assert {key: resolved.sources[key] for key in ("model.dropout", "model.hidden_size", "dataset.path")} == {
        "model.dropout": "defaults of gat",
        "model.hidden_size": "defaults of cora",
        "dataset.path": "job.yaml:1",
    }
    assert resolved.sources["model.name"] == "job.yaml:3"
    assert resolved.sources["training.seed"] == "--seed"
    assert resolved.sources["training.mode"] == "default"
    assert set(resolved.sources) == set(keys())
    assert resolved.given == {"dataset.path", "model.name", "training.lr", "training.seed"}
    assert resolved.notes == ()


def test_a_dataset_as_text_and_as_a_group_mix():
    resolved = resolve([file_layer("dataset: reddit"), Layer("flags", {"dataset": {"directed": "true"}})])
    assert (resolved.spec.dataset.path, resolved.spec.dataset.directed) == ("reddit", True)


def test_an_empty_group_is_legal():
    assert of_file("dataset: cora\ntraining:\n  # lr: 0.1\n").spec.training.lr == 0.01


def test_aliases_are_accepted_reported_once_and_echoed_under_the_right_name():
    resolved = resolve(
        [file_layer("dataset: cora\ntraining: {epochs: 5, learning_rate: 1e-3, wd_l2norm: 0}\nmodel: {heads: 2}\n")]
    )
    training = resolved.spec.training
    assert (training.num_epochs, training.lr, training.weight_decay) == (5, 0.001, 0.0)
    assert resolved.spec.model.num_heads == 2
    assert resolved.notes[0] == "training.epochs (job.yaml:2) is called num_epochs here; it is accepted"
    assert len(resolved.notes) == 4
    assert "num_epochs: 5 " in dump(resolved)
    assert "epochs: 5" not in dump(resolved).replace("num_epochs", "")


@pytest.mark.parametrize("alias", ["n_hidden", "hidden_channels"])
def test_an_alias_beside_the_right_name_is_an_error(alias):
    assert with_cora(f"model:\n  {alias}: 8\n  hidden_size: 16\n") == (
        f"model.{alias} (job.yaml:3) and model.hidden_size (job.yaml:4) are the same key\n"
        "  why: both mean model.hidden_size, here 8 and 16\n"
        "  fix: keep one of them, best model.hidden_size"
    )


def test_an_alias_in_one_layer_and_the_right_name_in_another_is_no_error():
    flags = Layer("flags", {"training": {"num_epochs": "7"}})
    assert resolve([file_layer("dataset: cora\ntraining: {epochs: 5}"), flags]).spec.training.num_epochs == 7


@pytest.mark.parametrize(
    ("text", "key", "fix"),
    [
        ("training: {num_epoch: 3}", "training.num_epoch = 3", "did you mean num_epochs?"),
        ("model: {lerning_rate: 3}", "model.lerning_rate = 3", "did you mean training.lr?"),
        ("training: {hiden_size: 3}", "training.hiden_size = 3", "did you mean model.hidden_size?"),
        ("num_epochs: 3", "num_epochs = 3", "num_epochs belongs under training"),
        ("model: {epochs: 3}", "model.epochs = 3", "epochs belongs under training"),
        ("training: {name: x}", "training.name = x", "name belongs at the top or under model or under backend"),
        ("cluster: {training: {lr: 1}}", "cluster.training = {'lr': 1}", "training belongs at the top"),
        ("trainning: {lr: 1}", "trainning = {'lr': 1}", "did you mean training?"),
        ("modle: {name: gat}", "modle = {'name': 'gat'}", "did you mean model?"),
        (
            "model: {random_seed: 1}",
            "model.random_seed = 1",
            "random_seed is called seed here, and belongs under training",
        ),
        ("training.lr: 1", "training.lr = 1", "put the key beneath its group, indented"),
        ("dataset: {split: {training: 1}}", "dataset.split.training = 1", "training belongs at the top"),
        ("cut: {xyzzy: 1}", "cut.xyzzy = 1", "the keys under cut are num_intervals, method, cut_seed"),
        ("model: {'': 1}", "model. = 1", "the keys under model are name, hidden_size, num_layers, num_heads"),
    ],
)
def test_an_unknown_key_gets_an_answer(text, key, fix):
    layer = file_layer(text)
    said = refusal(CORA, layer)
    assert said.startswith(f"{key} (job.yaml:1) is not a key of the job spec\n")
    assert f"fix: {fix}" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("training: {max_grad_norm: 1}", "gradient clipping is not offered: it needs the norm over all shards"),
        ("model: {norm: batch}", "batch norm is not offered: it needs the statistics of every vertex"),
        ("training: {fanout: [15, 10]}", "every epoch reads the whole graph: no neighbours are sampled"),
    ],
)
def test_what_is_not_offered_says_why(text, why):
    assert f"  why: {why}" in with_cora(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "training:\n  lr: fast",
            "training.lr = fast (job.yaml:3)\n  why: it must be a number above 0\n"
            "  fix: change it, or remove it for its default, 0.01",
        ),
        ("training: {lr: 1:30}", "training.lr = 1:30 (job.yaml:2)\n  why: it must be a number above 0"),
        ("training: {num_epochs: 010}", "training.num_epochs = 010 (job.yaml:2)\n  why: it must be a whole number of"),
        ("training: {seed: 2024-01-01}", "training.seed = 2024-01-01 (job.yaml:2)\n  why: it must be a whole number"),
        ("training: {lr: .nan}", "training.lr = nan (job.yaml:2)"),
        (
            "training: {lr: }",
            "training.lr = null (job.yaml:2)\n  why: it must be a number above 0\n  fix: give a value",
        ),
        ("training: {num_epochs: yes}", "training.num_epochs = true (job.yaml:2)"),
        ("training: {optimizer: adma}", "why: it must be sgd, adam or adamw\n  fix: did you mean adam?"),
        ("training: {optimizer: Adam}", "fix: did you mean adam?"),
        (
            "name: no",
            "name = false (job.yaml:2)\n  why: it must be 1 to 63 letters, digits, '.', '_' or '-', the first a letter "
            "or digit\n  fix: true and false are neither text nor numbers; YAML reads yes, no, on and off so too: "
            "put text in quotes",
        ),
        ("name: 2024", "name = 2024 (job.yaml:2)\n"),
        ("name: 2024", "fix: put text in quotes"),
        ("model: gcn", "model = gcn (job.yaml:2)\n  why: model is a group of keys\n  fix: write model: {name: gcn}"),
        ("training: 5", "why: training is a group of keys\n  fix: put the keys of training beneath it, indented"),
        ("model: {name: [a, b]}", "model.name = [a, b] (job.yaml:2)\n  why: it must be the name of a model"),
        ("cut: {num_intervals: 5000}", "why: it must be a whole number from 1 to 4096, or auto"),
        ("dataset_: 1", "did you mean dataset?"),
        ("dataset: {directed: maybe}", "why: it must be auto, true or false"),
        (
            "training:\n  staleness: 0",
            "training.staleness = 0 (job.yaml:3) with training.mode = pipe (default)\n"
            "  why: in pipe mode a Gather waits for this epoch's rows, so a bound has no effect\n"
            "  fix: remove staleness, or set mode: async",
        ),
        (
            "model: {hidden_size: [32, 16], num_layers: 2}",
            "model.hidden_size = [32, 16] (job.yaml:2) with model.num_layers = 2 (job.yaml:2)\n"
            "  why: a list of 2 hidden widths makes 3 layers\n"
            "  fix: remove num_layers, or give one width for each of its hidden layers",
        ),
        (
            "training: {momentum: 0.9}",
            "training.momentum = 0.9 (job.yaml:2) with training.optimizer = adam (default)\n"
            "  why: adam keeps its own moving averages and reads no momentum\n"
            "  fix: remove momentum, or set optimizer: sgd",
        ),
    ],
)
def test_a_wrong_value_says_key_value_allowed_and_place(text, said):
    text = text if text.startswith("dataset:") else f"name: x\n{text}" if "name:" not in text[:5] else f"\n{text}"
    assert said in refusal(CORA, file_layer(text))


def test_a_flag_is_named_by_its_flag():
    flags = Layer("flags", {"training": {"lr": "fast"}}, flags={"training.lr": "--lr"})
    assert refusal(CORA, flags).startswith("training.lr = fast (--lr)\n")


def test_all_that_is_wrong_is_said_at_once():
    said = with_cora("epochs: 3\ntraining:\n  lr: 0\n  sed: 1\nmodel: {dropout: 2}\n")
    assert said == (
        "4 problems in the job spec\n"
        "  epochs = 3 (job.yaml:2) is not a key of the job spec\n"
        "    fix: epochs belongs under training\n"
        "  training.sed = 1 (job.yaml:5) is not a key of the job spec\n"
        "    fix: did you mean seed?\n"
        "  model.dropout = 2 (job.yaml:6)\n"
        "    why: it must be a number of at least 0 and at most 0.998\n"
        "    fix: change it, or remove it for its default, 0.5\n"
        "  training.lr = 0 (job.yaml:4)\n"
        "    why: it must be a number above 0\n"
        "    fix: change it, or remove it for its default, 0.01"
    )


@pytest.mark.parametrize(("text", "key"), [("model: {}", "dataset"), ("dataset: {nan: error}", "dataset.path")])
def test_a_job_needs_a_dataset(text, key):
    said = refusal(file_layer(text))
    assert said.startswith(f"{key} is missing\n")
    assert "fix: add dataset: with a bundled name, a folder or a file" in said


def test_a_list_of_widths_sets_earlier_layers_aside():
    default = Layer("defaults of gat", {"model": {"num_layers": 2}}, is_default=True)
    by_list = resolve([CORA, default, file_layer("model: {hidden_size: [32, 16]}")])
    assert by_list.spec.model.num_layers == 3
    assert by_list.sources["model.num_layers"] == "fixed by hidden_size (job.yaml:1)"
    assert by_list.notes == ()

    flags = Layer("flags", {"model": {"hidden_size": "8,8,8"}}, flags={"model.hidden_size": "--hidden-size"})
    by_flag = resolve([CORA, file_layer("model: {num_layers: 2}"), flags])
    assert by_flag.spec.model.num_layers == 4
    assert by_flag.notes == (
        "model.num_layers = 2 (job.yaml:1) gives way to hidden_size = 8,8,8 (--hidden-size): 4 layers",
    )


def test_layers_after_a_list_of_widths_must_agree():
    flags = Layer("flags", {"model": {"num_layers": "5"}}, flags={"model.num_layers": "--num-layers"})
    widths = file_layer("model: {hidden_size: [32, 16]}")
    assert refusal(CORA, widths, flags).startswith(
        "model.hidden_size = [32, 16] (job.yaml:1) with model.num_layers = 5 (--num-layers)\n"
    )
    agreed = Layer("flags", {"model": {"num_layers": "3"}})
    assert resolve([CORA, widths, agreed]).spec.model.num_layers == 3


def test_a_number_after_a_list_of_widths_counts_layers_again():
    flags = Layer("flags", {"model": {"hidden_size": "64"}})
    model = resolve([CORA, file_layer("model: {hidden_size: [32, 16]}"), flags]).spec.model
    assert model.hidden_sizes == (64,)


def test_a_key_without_effect_is_noted():
    assert of_file("dataset: cora\ntraining: {early_stop_rounds: 5}").notes == (
        "training.early_stop_rounds = 5 (job.yaml:2) has no effect: use_early_stop is false",
    )
    assert of_file("dataset: cora\ntraining: {early_stop_rounds: 5, use_early_stop: yes}").notes == ()


UNBUILT_VALUES = {
    "dataset.path": "s3://bucket/reddit",
    "training.mode": "async",
    "training.staleness": 0,
    "training.weight_update": "interval",
    "training.async_until": 0.8,
    "training.deterministic": True,
    "cluster.spot": True,
    "output.path": "s3://bucket/runs",
}
NEEDS_ASYNC = {"training.staleness", "training.weight_update", "training.async_until"}


@pytest.mark.parametrize("row", UNBUILT, ids=lambda row: row.key)
def test_what_is_not_built_is_refused_when_somebody_sets_it(row):
    # A key without an entry is refused whatever it says: even its own default.
    value = UNBUILT_VALUES.get(row.key, keys()[row.key].default)
    *parents, leaf = row.key.split(".")
    (group,) = parents
    values = {group: {leaf: value, **({"mode": "async"} if row.key in NEEDS_ASYNC else {})}}
    resolved = resolve([CORA, Layer("job.yaml", values)])
    with pytest.raises(SpecError, match="not in this version") as caught:
        refuse_unbuilt(resolved)
    assert row.key in str(caught.value)
    assert row.part in str(caught.value)

    refuse_unbuilt(resolve([CORA, Layer("a default", values, is_default=True)]))


@pytest.mark.parametrize("row", [row for row in UNBUILT if row.works], ids=lambda row: row.key)
def test_values_that_work_pass(row):
    group, leaf = row.key.split(".")
    for value in row.works:
        refuse_unbuilt(resolve([CORA, Layer("job.yaml", {group: {leaf: value}})]))


def test_each_row_names_a_key_once():
    assert [row.key for row in UNBUILT if row.key not in keys()] == []
    assert len({row.key for row in UNBUILT}) == len(UNBUILT)


def test_defaults_are_not_refused():
    refuse_unbuilt(of_file("dataset: cora"))


def test_a_refusal_says_what_is_missing_and_what_works():
    with pytest.raises(SpecError) as caught:
        refuse_unbuilt(of_file("dataset: cora\ntraining: {deterministic: true}\ncluster: {spot: true}"))
    assert str(caught.value) == (
        "2 problems in the job spec\n"
        "  training.deterministic = true (job.yaml:2): not in this version\n"
        "    why: pinned CPU kernels: not built yet\n"
        "    fix: remove it, or set it to false\n"
        "  cluster.spot = true (job.yaml:3): not in this version\n"
        "    why: training on AWS: not built yet\n"
        "    fix: remove it, or set it to false"
    )


def without_sources(text: str) -> list[str]:
    return [line.rpartition("#")[0].rstrip() for line in text.splitlines()]


@pytest.mark.parametrize(
    "text",
    [
        "dataset: cora",
        "dataset: 'no'\nname: '010'\nmodel: {hidden_size: [32, 16], name: gat}\ntraining: {weight_decay: 1e-7}",
        "dataset: {path: 'a b: #c', split: {train: 0.5}}\ntraining: {class_weights: [1, 2], optimizer: sgd}",
        "dataset: {path: 'é\\n\"x', directed: false}\ntraining: {mode: async, staleness: 2, async_until: 0.75}",
        "dataset: cora\ncluster: {max_restarts: 5}\noutput: {path: s3://b/runs}",
        "dataset: cora\nmodel: {num_layers: 1, hidden_size: []}",
    ],
)
def test_the_dump_reads_back_as_the_same_spec(text):
    resolved = of_file(text)
    again = resolve([file_layer(dump(resolved), "spec.yaml")])
    assert again.spec == resolved.spec
    assert without_sources(dump(again)) == without_sources(dump(resolved))


def test_the_dump_of_defaults_can_be_trained_again():
    refuse_unbuilt(resolve([file_layer(dump(of_file("dataset: cora")), "spec.yaml")]))


def test_the_dump_says_where_each_value_came_from():
    lines = dump(of_file("dataset: cora\ntraining:\n  lr: 0.5\n")).splitlines()
    said = {line.split("#")[0].strip(): line.rpartition("#")[2].strip() for line in lines if line[0] != "#"}
    assert said["path: cora"] == "job.yaml:1"
    assert said["lr: 0.5"] == "job.yaml:3"
    assert said["mode: pipe"] == "default"
    assert "  # staleness: 0                              # default" in lines
