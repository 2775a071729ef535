"""Every file in common/models/ is proven. A new one is picked up by its name; nothing here has to be edited."""

import sys
from pathlib import Path

import numpy as np
import pytest

from common import plugins
from local_cloud.in_process import run_in_process
from tests.conformance import model_proofs as proofs
from tests.small_jobs import small_dataset, small_job

PACKAGE = "common.models"
MODELS = plugins.names(PACKAGE)
each_model = pytest.mark.parametrize("name", MODELS)
each_depth = pytest.mark.parametrize("depth", proofs.DEPTHS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


def test_there_are_models():
    assert {"gcn", "gat", "graphsage", "gin"} <= set(MODELS)


@each_model
def test_defaults(name):
    proofs.prove_defaults(plugins.load(PACKAGE, name))


@each_model
@each_depth
def test_declaration(name, depth):
    proofs.prove_declaration(plugins.load(PACKAGE, name), depth)
    proofs.prove_a_declaration_is_plain(plugins.load(PACKAGE, name), depth)


@each_model
@each_depth
def test_program(name, depth, folder):
    proofs.prove_program(plugins.load(PACKAGE, name), depth, folder)


@each_model
@each_depth
def test_gradients(name, depth, folder):
    proofs.prove_gradients(plugins.load(PACKAGE, name), depth, folder)


@each_model
@each_depth
def test_hoist_and_commute_never_change_the_mathematics(name, depth, folder):
    proofs.prove_mathematics(plugins.load(PACKAGE, name), depth, folder)


@each_model
def test_the_same_bits_on_1_and_3_graph_servers(name, folder):
    """Two epochs with dropout, in float32, then an evaluation."""
    found = []
    for num_graph_servers in (1, 3):
        keys = {
            "model.name": name,
            "model.hidden_size": proofs.HIDDEN,
            "model.num_heads": 2,
            "model.attention_dropout": 0.5,
            "training.num_epochs": 2,
            "cluster.num_graph_servers": num_graph_servers,
        }
        found.append(run_in_process(small_job(small_dataset(), folder, keys)))
    one, three = found
    assert min(three.intervals_per_server) > 0
    assert min(three.ghosts_per_server) > 0
    assert one.last.keys() == three.last.keys()
    assert all(np.array_equal(one.last[weight], three.last[weight]) for weight in one.last)
    assert np.array_equal(one.logits, three.logits)


# ---- a new file


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder of models that holds one new file."""
    package = tmp_path / "shelf_with_a_new_model"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "linear_sum.py").write_text(NEW_MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for name in [name for name in sys.modules if name.startswith(package.name)]:
        del sys.modules[name]


NEW_MODEL = '''\
"""A model in a few lines: sums, a map, and a gate of its own."""

from dataclasses import dataclass

import numpy as np

from common.saga.gathers import WeightedSum
from common.saga.layer import Layer, Model, hidden_ending
from common.saga.tensor_functions import Elementwise, Linear, Parameter

DEFAULTS = {"model.hidden_size": 32}


@dataclass(frozen=True)
class Gate(Elementwise):
    def parameters(self, *widths):
        return (Parameter("gate", (widths[0],), "zeros"),)

    def forward(self, weights, masks, *rows):
        return rows[0] * np.exp(weights["gate"])

    def vjp(self, weights, masks, grad, *rows, want_rows):
        slope = np.exp(weights["gate"])
        return (grad * slope,), {"gate": (grad * rows[0] * slope).sum(axis=0)}


def build(options):
    layers = [
        Layer(WeightedSum("mean"), (Linear(options.out_width(n)), Gate(), *hidden_ending(options, n)))
        for n in range(options.num_layers)
    ]
    return Model("linear_sum", options.num_features, tuple(layers))
'''


def test_a_new_file_is_picked_up_and_proven(shelf, folder):
    assert plugins.names(shelf.name) == ("linear_sum",)
    module = plugins.load(shelf.name, "linear_sum")
    proofs.prove_defaults(module)
    for depth in proofs.DEPTHS:
        proofs.prove_declaration(module, depth)
        proofs.prove_a_declaration_is_plain(module, depth)
        proofs.prove_program(module, depth, folder)
        proofs.prove_mathematics(module, depth, folder)
    proofs.prove_gradients(module, 2, folder)


@pytest.mark.parametrize(
    ("old", "new", "proof"),
    [
        ("(grad * rows[0] * slope)", "(grad * rows[0])", "gradients"),
        ("(grad * slope,)", "(grad,)", "gradients"),
        ('"model.hidden_size"', '"model.hidden_sizes"', "defaults"),
        ('Model("linear_sum"', 'Model("gcn"', "declaration"),
        ('"gate", (widths', '"weight", (widths', "declaration"),
        ("@dataclass(frozen=True)\nclass Gate", "class Gate", "equal"),
    ],
)
def test_a_new_file_with_a_fault_is_not_proven(shelf, folder, old, new, proof):
    file = shelf / "linear_sum.py"
    assert old in NEW_MODEL
    file.write_text(NEW_MODEL.replace(old, new))
    module = plugins.load(shelf.name, "linear_sum")
    with pytest.raises(AssertionError):
        PROOFS[proof](module, folder)


PROOFS = {
    "defaults": lambda module, folder: proofs.prove_defaults(module),
    "declaration": lambda module, folder: proofs.prove_declaration(module, 2),
    "equal": lambda module, folder: proofs.prove_a_declaration_is_plain(module, 2),
    "gradients": lambda module, folder: proofs.prove_gradients(module, 2, folder),
}
