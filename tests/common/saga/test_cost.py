"""What a step is said to cost is what it costs: rows and gradients by their bytes, linear maps by counting products."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from common import plugins
from common.saga.compute import TaskInputs, TaskOutputs, compute
from common.saga.cost import row_bytes, row_stride, step_cost, tensor_width
from common.saga.layer import Model, ModelOptions
from common.saga.loss import LossOptions
from common.saga.masks import Masks
from common.saga.program import Kind, Programs, Step, derive

MODELS = plugins.names("common.models")
CLASSES = 5


class Counting(np.ndarray):
    """An array whose matrix products are counted, two operations for each multiply-add."""

    log: list[int]

    def __array_finalize__(self, other: Any) -> None:
        self.log = getattr(other, "log", [])

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        log = next(x.log for x in inputs if isinstance(x, Counting))
        plain = [x.view(np.ndarray) if isinstance(x, Counting) else x for x in inputs]
        if isinstance(options.get("out"), tuple):
            options["out"] = tuple(x.view(np.ndarray) if isinstance(x, Counting) else x for x in options["out"])
        result = getattr(ufunc, method)(*plain, **options)
        if ufunc is np.matmul:
            log.append(2 * result.size * plain[0].shape[-1])
        return counted(result, log) if isinstance(result, np.ndarray) else result


def counted(array: np.ndarray, log: list[int]) -> Counting:
    view = array.view(Counting)
    view.log = log
    return view


def programs_of(name: str, *, layers: int, hoist: bool, commute: bool, dropout: float) -> Programs:
    options = ModelOptions(
        num_features=40, num_classes=CLASSES, hidden_sizes=(12,) * (layers - 1), num_heads=3, dropout=dropout
    )
    return derive(plugins.load("common.models", name).build(options), hoist=hoist, commute=commute)


def run(model: Model, step: Step, num_rows: int) -> tuple[TaskOutputs, int]:
    """What the step gives, and the operations of its matrix products."""
    log: list[int] = []
    rng = np.random.default_rng(0)
    rows: dict[str, np.ndarray] = {}
    for name in step.reads:
        match name:
            case "labels":
                rows[name] = np.zeros((num_rows, 1), np.int64)
            case "masks":
                rows[name] = np.ones((num_rows, 1), np.uint8)
            case _:
                block = rng.standard_normal((num_rows, tensor_width(model, name)), np.float32)
                rows[name] = counted(block, log)
    weights: Mapping[str, np.ndarray] = {
        p.name: counted(rng.standard_normal(p.shape, np.float32), log) for p in model.parameters()
    }
    masks = Masks(seed=0, interval=0, epoch=1, training=True)
    inputs = TaskInputs(rows, weights, masks, LossOptions((1.0,) * CLASSES, float(num_rows)))
    return compute(model, step, inputs), sum(log)


def tasks(name: str) -> Iterator[tuple[Model, Step]]:
    for hoist, commute, dropout in [(True, True, 0.5), (False, True, 0.0), (True, False, 0.0), (False, False, 0.5)]:
        for layers in (1, 2, 3):
            programs = programs_of(name, layers=layers, hoist=hoist, commute=commute, dropout=dropout)
            for program in (programs.train, programs.evaluate):
                yield from ((programs.model, step) for step in program.steps if step.kind is Kind.APPLY)


@pytest.mark.parametrize("name", MODELS)
def test_flops_are_those_of_the_products_that_run(name):
    for model, step in tasks(name):
        # The difference leaves out what a task does once, whatever its rows: GAT multiplies weights with each other.
        seen = (run(model, step, 24)[1] - run(model, step, 8)[1]) / 16
        assert step_cost(model, step).flops_per_vertex == seen, (str(step), model.layers)


@pytest.mark.parametrize("name", MODELS)
def test_bytes_are_those_of_what_is_read_and_given(name):
    for model, step in tasks(name):
        cost, (outputs, _) = step_cost(model, step), run(model, step, 8)
        assert 8 * cost.bytes_out_per_vertex == sum(block.nbytes for block in outputs.rows.values())
        assert cost.gradient_bytes == sum(gradient.nbytes for gradient in outputs.gradients.values())
        assert cost.bytes_in_per_vertex == sum(row_bytes(model, read) for read in step.reads)


def test_graph_steps_move_ghosts_and_tensor_steps_do_not():
    programs = programs_of("gcn", layers=2, hoist=True, commute=True, dropout=0.0)
    ghosts = {str(step): step_cost(programs.model, step).bytes_per_ghost for step in programs.train.steps}
    assert {step: size for step, size in ghosts.items() if size} == {"Scatter1": 4 * CLASSES, "∇Scatter1": 4 * CLASSES}


@pytest.mark.parametrize(("num_bytes", "stored"), [(164, 192), (288, 320), (64, 64), (512, 512), (82, 82), (28, 28)])
def test_rows_of_tables_begin_at_cache_lines_where_that_costs_little(num_bytes: int, stored: int):
    assert row_stride("source1", num_bytes) == row_stride("backward0", num_bytes) == stored
    assert row_stride("gathered1", num_bytes) == num_bytes
