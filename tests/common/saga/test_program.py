"""The seven rules, each on its own, and the programs that the documentation shows, word for word."""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from common import plugins
from common.saga.gathers import WeightedSum
from common.saga.layer import Layer, Model, ModelOptions
from common.saga.program import Kind, Programs, backward, derive, forward, fuse, prune
from common.saga.tensor_functions import Activation, Bias, Identity, Linear
from tests.small_jobs import small_dataset, small_job
from tests.walk import Walk

MODELS = ("gcn", "graphsage", "gin", "gat")
HOIST_AND_COMMUTE = [(True, True), (True, False), (False, True), (False, False)]


def declared(name: str, hidden: tuple[int, ...] = (16,), *, dropout: float = 0.5, num_features: int = 602) -> Model:
    options = ModelOptions(num_features, 41, hidden, num_heads=2, dropout=dropout, attention_dropout=dropout)
    return plugins.load("common.models", name).build(options)


def programs(name: str, hidden: tuple[int, ...] = (16,), *, hoist: bool = True, commute: bool = True) -> Programs:
    return derive(declared(name, hidden), hoist=hoist, commute=commute)


def words(stages) -> str:
    return " · ".join(map(str, stages))


def step_of(found: Programs, text: str):
    (step,) = [step for step in found.train.steps if str(step) == text]
    return step


# ---- as documented


def test_gcn_as_in_the_paper():
    assert str(programs("gcn", hoist=False, commute=False).train) == (
        "Gather0 · ApplyVertex0 · Scatter1 · Gather1 · ApplyVertex1+Loss+∇ApplyVertex1 · "
        "∇Scatter1 · ∇Gather1 · ∇ApplyVertex0"
    )


def test_gcn_by_default():
    """The layer in the middle narrows: its W stands in the same tensor task as the layer below."""
    assert str(programs("gcn", (128,)).train) == (
        "(once: Gather0) ApplyVertex0+1 · Scatter1 · Gather1 · ApplyVertex1+Loss+∇ApplyVertex1 · "
        "∇Scatter1 · ∇Gather1 · ∇ApplyVertex1+0"
    )


@pytest.mark.parametrize(("hoist", "commute"), HOIST_AND_COMMUTE)
def test_gat(hoist, commute):
    """Neither hoisted nor commuted."""
    assert str(programs("gat", hoist=hoist, commute=commute).train) == (
        "ApplyVertex0 · Scatter0 · ApplyEdge0 · Gather0 · ApplyVertex0+1 · "
        "Scatter1 · ApplyEdge1 · Gather1 · ApplyVertex1+Loss+∇ApplyVertex1 · "
        "∇Scatter1 · ∇ApplyEdge1 · ∇Gather1 · ∇ApplyVertex1+0 · ∇Scatter0 · ∇ApplyEdge0 · ∇Gather0 · ∇ApplyVertex0"
    )


@pytest.mark.parametrize("name", ["gcn", "graphsage", "gin"])
def test_one_layer(name):
    assert str(programs(name, ()).train) == "(once: Gather0) ApplyVertex0+Loss+∇ApplyVertex0"


def test_one_layer_of_attention():
    assert str(programs("gat", ()).train) == (
        "ApplyVertex0 · Scatter0 · ApplyEdge0 · Gather0 · ApplyVertex0+Loss+∇ApplyVertex0 · "
        "∇Scatter0 · ∇ApplyEdge0 · ∇Gather0 · ∇ApplyVertex0"
    )


def test_four_layers_of_different_widths():
    """64 -> 64 does not narrow, so layer 1 stays as declared; 64 -> 8 and 8 -> 41: only layer 2 is commuted."""
    assert str(programs("gcn", (64, 64, 8)).train) == (
        "(once: Gather0) ApplyVertex0 · Scatter1 · Gather1 · ApplyVertex1+2 · Scatter2 · Gather2 · ApplyVertex2 · "
        "Scatter3 · Gather3 · ApplyVertex3+Loss+∇ApplyVertex3 · ∇Scatter3 · ∇Gather3 · ∇ApplyVertex2 · "
        "∇Scatter2 · ∇Gather2 · ∇ApplyVertex2+1 · ∇Scatter1 · ∇Gather1 · ∇ApplyVertex0"
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(("hoist", "commute"), HOIST_AND_COMMUTE)
def test_evaluation_is_the_forward_half(name, depth, hoist, commute):
    found = programs(name, (16,) * (depth - 1), hoist=hoist, commute=commute)
    ahead = [str(stage) for step in found.train.steps for stage in step.stages if not stage.backward]
    assert [str(stage) for step in found.evaluate.steps for stage in step.stages] == ahead
    assert str(found.predict) == str(found.evaluate)
    assert not any("logits" in step.writes for step in found.evaluate.steps)
    assert "logits" in found.predict.steps[-1].writes


# ---- 1 forward


def linear_model(*layers: Layer, num_features: int = 4) -> Model:
    return Model("made up", num_features, layers)


def plain(out: int = 3, *, project: bool = False) -> Layer:
    return Layer(WeightedSum("sum"), (Linear(out),), project=(Linear(4, "ahead"),) if project else ())


def test_forward_without_project_has_no_first_scatter():
    stages = forward(linear_model(plain(), plain()))
    assert words(stages) == "Gather0 · ApplyVertex0 · Scatter1 · Gather1 · ApplyVertex1 · Loss"


def test_forward_with_project_scatters_what_it_projects():
    stages = forward(linear_model(plain(project=True), plain(project=True)))
    assert words(stages) == (
        "ApplyVertex0 · Scatter0 · Gather0 · ApplyVertex0 · ApplyVertex1 · Scatter1 · Gather1 · ApplyVertex1 · Loss"
    )


def test_forward_with_edges():
    stages = forward(declared("gat", ()))
    assert words(stages) == "ApplyVertex0 · Scatter0 · ApplyEdge0 · Gather0 · ApplyVertex0 · Loss"


# ---- 2 backward


def test_backward_is_in_reverse_with_every_scatter():
    stages = backward(linear_model(plain(project=True), plain()))
    assert words(stages) == (
        "∇ApplyVertex1 · ∇Scatter1 · ∇Gather1 · ∇ApplyVertex0 · ∇Scatter0 · ∇Gather0 · ∇ApplyVertex0"
    )
    assert [stage.part for stage in stages if stage.kind is Kind.APPLY] == ["update", "update", "project"]


def test_backward_with_edges():
    stages = backward(declared("gat", ()))
    assert words(stages) == "∇ApplyVertex0 · ∇Scatter0 · ∇ApplyEdge0 · ∇Gather0 · ∇ApplyVertex0"


# ---- 3 prune


def without_parameters() -> Layer:
    return Layer(WeightedSum("mean"), (Activation("tanh"),))


def test_prune_stops_below_the_lowest_part_with_parameters():
    model = linear_model(without_parameters(), without_parameters(), plain(), plain())
    assert words(prune(backward(model), model)) == "∇ApplyVertex3 · ∇Scatter3 · ∇Gather3 · ∇ApplyVertex2"


def test_prune_goes_below_the_gather_if_only_the_project_has_parameters():
    """As the lowest layer of GAT without its bias."""
    lowest = Layer(WeightedSum("sum"), (Identity(),), project=(Linear(4),))
    model = linear_model(lowest, plain())
    assert words(prune(backward(model), model)) == (
        "∇ApplyVertex1 · ∇Scatter1 · ∇Gather1 · ∇ApplyVertex0 · ∇Scatter0 · ∇Gather0 · ∇ApplyVertex0"
    )


def test_a_model_without_parameters_has_no_backward_half():
    model = linear_model(without_parameters())
    assert prune(backward(model), model) == []


def test_a_pruned_program_wants_no_gradient_of_rows_at_its_end():
    found = derive(linear_model(without_parameters(), without_parameters(), plain(), plain()), commute=False)
    assert found.train.steps[-1].writes == ()
    assert "∇Gather2" not in str(found.train)
    assert str(found.train).startswith("(once: Gather0) ApplyVertex0 · Scatter1 · Gather1 · ApplyVertex1")


# ---- 4 fuse


def test_fuse_joins_neighbouring_tensor_stages_and_edge_stages_with_their_gather():
    model = declared("gat", (8,))
    steps = fuse(forward(model) + backward(model))
    assert [(str(step), step.kind) for step in steps[:5]] == [
        ("ApplyVertex0", Kind.APPLY),
        ("Scatter0", Kind.SCATTER),
        ("ApplyEdge0 · Gather0", Kind.GATHER),
        ("ApplyVertex0+1", Kind.APPLY),
        ("Scatter1", Kind.SCATTER),
    ]
    assert len(steps) == 13


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_no_two_tensor_tasks_are_neighbours(name, depth):
    steps = programs(name, (16,) * (depth - 1)).train.steps
    kinds = [step.kind for step in steps]
    assert not any(a is b is Kind.APPLY for a, b in pairwise(kinds))
    assert sum(step.has_loss for step in steps) == 1


# ---- 5 tensors


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(("hoist", "commute"), HOIST_AND_COMMUTE)
def test_everything_read_is_a_constant_or_written_before(name, depth, hoist, commute):
    found = programs(name, (16,) * (depth - 1), hoist=hoist, commute=commute)
    for program in (found.train, found.evaluate, found.predict):
        there = set(found.constants) - {name for step in found.train.once for name in step.writes}
        for step in (*program.once, *program.steps):
            assert set(step.reads) <= there, step
            there |= set(step.writes)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_tensor_task_writes_nothing_that_nobody_reads(name, depth):
    found = programs(name, (16,) * (depth - 1))
    steps = [*found.train.once, *found.train.steps]
    read = {tensor for step in steps for tensor in step.reads}
    assert not [tensor for step in steps if step.kind is Kind.APPLY for tensor in step.writes if tensor not in read]


def test_what_gcn_keeps():
    """The backward tensor task reads ÂX and the gradient; hidden rows, activations and masks are made again."""
    found = programs("gcn", (128,))
    last = step_of(found, "∇ApplyVertex1+0")
    assert last.reads == ("gathered0", "grad_source1")
    assert words(last.recompute) == "ApplyVertex0 · ApplyVertex1"
    assert last.writes == ()
    assert step_of(found, "ApplyVertex0+1").writes == ("projected1",)
    middle = step_of(found, "ApplyVertex1+Loss+∇ApplyVertex1")
    assert (middle.reads, middle.writes, middle.recompute) == (
        ("gathered1", "labels", "masks"), ("grad_gathered1",), ()
    )  # fmt: skip


def test_what_gat_keeps():
    found = programs("gat", (8,))
    assert step_of(found, "∇Scatter0").reads == ("grad_gathered0", "gathered0", "projected0", "saved0")
    assert step_of(found, "∇ApplyEdge0 · ∇Gather0").reads == ("backward0", "projected0", "saved0")
    assert step_of(found, "∇ApplyEdge0 · ∇Gather0").writes == ("grad_source0",)
    assert step_of(found, "∇ApplyVertex0").reads == ("hidden0", "grad_source0")
    assert step_of(found, "∇ApplyVertex1+0").reads == ("gathered0", "grad_source1")


def test_sage_sums_two_gradients_of_its_hidden_rows():
    last = step_of(programs("graphsage", (128,)), "∇ApplyVertex1+0")
    assert {"grad_source1", "grad_self1"} <= set(last.reads)
    assert step_of(programs("graphsage", (128,)), "ApplyVertex0+1").writes == ("hidden1", "projected1")


# ---- 6 hoist


@pytest.mark.parametrize("name", ["gcn", "graphsage", "gin"])
def test_only_the_gather_of_the_features_is_hoisted(name):
    found = programs(name, (16, 16))
    assert words(found.train.once) == "Gather0"
    assert found.evaluate.once == found.train.once
    assert "gathered0" in found.constants
    assert not any(step.kind is Kind.GATHER and step.layer == 0 for step in found.train.steps)


@pytest.mark.parametrize(("name", "kept"), [("gcn", False), ("graphsage", True), ("gin", True)])
def test_gcn_reads_the_features_at_load_only(name, kept):
    found = programs(name)
    assert ("hidden0" in {tensor for step in found.train.steps for tensor in step.reads}) is kept


def test_hoist_can_be_switched_off():
    found = programs("gcn", hoist=False)
    assert found.train.once == ()
    assert "gathered0" not in found.constants
    assert str(found.train).startswith("Gather0 · ")


def test_what_a_project_made_is_no_constant():
    assert derive(linear_model(plain(project=True))).train.once == ()
    assert programs("gat").train.once == ()


# ---- 7 commute


def commuted_layers(found: Programs) -> list[int]:
    return [n for n, layer in enumerate(found.model.layers) if layer.project]


@pytest.mark.parametrize("name", ["gcn", "graphsage", "gin"])
@pytest.mark.parametrize(
    ("hidden", "moved"), [((128,), [1]), ((41,), []), ((16,), []), ((128, 64), [1, 2]), ((128, 128, 64), [2, 3])]
)
def test_only_what_narrows_is_commuted(name, hidden, moved):
    assert commuted_layers(programs(name, hidden)) == moved
    assert commuted_layers(programs(name, hidden, commute=False)) == []


def test_a_hoisted_gather_is_not_commuted():
    """602 -> 41 narrows, and yet layer 0 stays."""
    assert commuted_layers(derive(declared("gcn", (), dropout=0.0))) == []
    assert commuted_layers(derive(declared("gcn", (), dropout=0.0), hoist=False)) == [0]


@pytest.mark.parametrize("name", ["gcn", "graphsage", "gin"])
def test_nothing_commutes_over_input_dropout(name):
    assert commuted_layers(derive(declared(name, ()), hoist=False)) == []
    assert commuted_layers(derive(declared(name, (), dropout=0.0), hoist=False)) == [0]


def test_nothing_commutes_over_what_stands_before_the_map():
    layer = Layer(WeightedSum("sum"), (Bias(), Linear(1)))
    assert commuted_layers(derive(linear_model(plain(), layer))) == []


def test_attention_is_not_a_weighted_sum():
    attention = replace(declared("gat", ()).layers[0], update=(Linear(1),))
    assert derive(linear_model(attention)).model.layers[0].update == (Linear(1),)


def test_bias_and_activation_stay_behind():
    layer = programs("gcn", (128, 64)).model.layers[1]
    assert layer.project == (Linear(64),)
    assert layer.update[:2] == (Identity(), Bias())
    assert layer.reads == ("gathered",)


def test_sage_moves_the_neighbour_matrix_and_gin_both_terms():
    sage, gin = (programs(name, (128,)).model.layers[1] for name in ("graphsage", "gin"))
    assert (sage.project, sage.reads) == ((Linear(41, "weight_neighbour"),), ("gathered", "self"))
    assert (gin.project, gin.reads) == ((Linear(41, "weight1"),), ("gathered", "projected"))


@pytest.mark.parametrize("name", MODELS)
def test_the_parameters_are_the_same_by_name_and_shape(name):
    model = declared(name, (128, 64))
    moved = derive(model).model
    assert {p.name: p for p in moved.parameters()} == {p.name: p for p in model.parameters()}
    assert [w.out for w in moved.widths()] == [w.out for w in model.widths()]


def test_the_one_gather_of_an_epoch_is_41_wide():
    found = programs("gcn", (128,))
    assert [found.model.widths()[s.layer].source for s in found.train.steps if s.kind is Kind.GATHER] == [41, 41]


# ---- hoist and commute never change the mathematics


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("graphs")


@dataclass(frozen=True)
class Outcome:
    loss: float
    gradients: dict[str, np.ndarray]
    logits: np.ndarray


def outcome(folder: Path, name: str, hidden: tuple[int, ...], dropout: float, **switches: bool) -> Outcome:
    keys = {"model.name": name, "model.hidden_size": hidden, "model.num_heads": 2, "model.dropout": dropout}
    keys |= {"model.attention_dropout": dropout, "model.num_layers": len(hidden) + 1}
    keys |= {f"training.{switch}": on for switch, on in switches.items()}
    walk = Walk(small_job(small_dataset(), folder, keys))
    random = np.random.default_rng(0)
    weights = {k: w + 0.1 * random.normal(size=w.shape) for k, w in sorted(walk.initial_weights().items())}
    return Outcome(*walk.train(weights, epoch=3), walk.logits(weights))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("hidden", [(), (9,), (9, 7, 4)])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_mathematics_stays(folder, name, hidden, dropout):
    """Losses, logits and gradients in float64, against the paper's own program; masks and weights are the same."""
    paper = outcome(folder, name, hidden, dropout, hoist=False, commute=False)
    for hoist, commute in HOIST_AND_COMMUTE[:3]:
        found = outcome(folder, name, hidden, dropout, hoist=hoist, commute=commute)
        assert abs(found.loss - paper.loss) < 1e-10
        assert np.allclose(found.logits, paper.logits, rtol=0, atol=1e-10)
        assert found.gradients.keys() == paper.gradients.keys()
        for key, gradient in found.gradients.items():
            assert np.allclose(gradient, paper.gradients[key], rtol=0, atol=1e-10), key
