"""What must hold for every file in common/models/, as functions of its module.

A model keeps to these whatever it computes: they know its declaration only.
"""

from pathlib import Path
from types import ModuleType

import numpy as np

from common.saga.compute import step_gradients
from common.saga.layer import Model, ModelOptions
from common.saga.program import Kind
from common.spec_keys import keys
from tests.small_jobs import NUM_CLASSES, NUM_FEATURES, job_of, small_dataset
from tests.walk import Walk, slope

DEPTHS = (1, 2, 3)
HIDDEN = (6, 4)
"""Of three layers: the second narrows, so rule 7 has something to do."""


def options(depth: int, *, dropout: float = 0.4) -> ModelOptions:
    return ModelOptions(
        NUM_FEATURES,
        NUM_CLASSES,
        HIDDEN[: depth - 1],
        num_heads=2,
        activation="elu",
        dropout=dropout,
        attention_dropout=dropout,
    )


def prove_defaults(module: ModuleType) -> None:
    """DEFAULTS sets keys that the job spec has, of groups that a model has a say in."""
    known = keys()
    for key in module.DEFAULTS:
        assert key in known, f"{module.__name__}.DEFAULTS: there is no key {key}"
        assert key.startswith(("model.", "training.")), key
        assert key != "model.name"


def prove_declaration(module: ModuleType, depth: int) -> None:
    """It builds what was asked for; its name is the file's; its parameters bear different names."""
    model: Model = module.build(options(depth))
    assert model.name == module.__name__.rpartition(".")[2]
    assert len(model.layers) == depth
    assert model.num_features == NUM_FEATURES
    assert model.widths()[-1].out == NUM_CLASSES
    names = [p.name for p in model.parameters()]
    assert names
    assert len(set(names)) == len(names)
    for parameter in model.parameters():
        assert parameter.shape, f"{parameter.name} has shape (): parameters are split by rows, use (1,)"
        assert parameter.init in ("glorot", "zeros")


def prove_a_declaration_is_plain(module: ModuleType, depth: int) -> None:
    """The same options give an equal model: graph server and function derive the same program, each on its own."""
    assert module.build(options(depth)) == module.build(options(depth))


def prove_program(module: ModuleType, depth: int, folder: Path) -> None:
    """It derives, and every parameter gets its gradient from exactly one tensor task."""
    programs = job_of(module.build(options(depth)), small_dataset(), folder, {}).programs
    tasks = [step for step in programs.train.steps if step.kind is Kind.APPLY]
    given = sorted(name for step in tasks for name in step_gradients(programs.model, step))
    assert given == sorted(p.name for p in programs.model.parameters())


def prove_gradients(module: ModuleType, depth: int, folder: Path) -> None:
    """All of them, within 1e-6 of central differences of the loss, on two graph servers, with dropout.

    In two random directions of each weight: a direction moves every entry, so one that is wrong shows.
    """
    walk = Walk(job_of(module.build(options(depth)), small_dataset(), folder, {}), 2)
    assert walk.num_ghosts > 0
    weights = some_weights(walk)
    _, gradients = walk.train(weights)
    random = np.random.default_rng(1)
    for name in sorted(weights):
        for _ in range(2):
            towards = random.choice([-1.0, 1.0], weights[name].shape)
            difference = float((gradients[name] * towards).sum()) - slope(walk, weights, {name: towards})
            assert abs(difference) < 1e-6, f"the gradient of {name}"


def prove_mathematics(module: ModuleType, depth: int, folder: Path) -> None:
    """Hoisted and commuted or not: the same losses, logits and gradients; with and without dropout."""
    for dropout in (0.0, 0.4):
        model = module.build(options(depth, dropout=dropout))
        found = []
        for on in (False, True):
            job = job_of(model, small_dataset(), folder, {"training.hoist": on, "training.commute": on})
            walk = Walk(job)
            weights = some_weights(walk)
            found.append((*walk.train(weights, epoch=3), walk.logits(weights)))
        (loss, gradients, logits), (other_loss, other_gradients, other_logits) = found
        assert abs(loss - other_loss) < 1e-10
        assert np.allclose(logits, other_logits, rtol=0, atol=1e-10)
        assert gradients.keys() == other_gradients.keys()
        for name, gradient in gradients.items():
            assert np.allclose(gradient, other_gradients[name], rtol=0, atol=1e-10), name


def some_weights(walk: Walk) -> dict[str, np.ndarray]:
    """Away from zero, where relu has its kink and a bias has no sign."""
    random = np.random.default_rng(0)
    return {name: w + 0.1 * random.normal(size=w.shape) for name, w in sorted(walk.initial_weights().items())}
