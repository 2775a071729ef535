"""What is said of the memory of a training's largest tensor task holds, as NumPy's own allocations are counted."""

import tracemalloc

import numpy as np
import pytest

from common.saga.compute import TaskInputs, compute
from common.saga.cost import task_row_bytes, tensor_width
from common.saga.layer import Model
from common.saga.loss import LossOptions
from common.saga.masks import Masks
from common.saga.program import Kind, Step
from tests.common.saga.test_cost import CLASSES, MODELS, programs_of

ROWS = 3000
FEW = 120_000
"""Bytes that do not grow with the rows: weights, their gradients, a key, Python's own."""


def inputs_of(model: Model, step: Step) -> TaskInputs:
    random, rows = np.random.default_rng(0), {}
    for name in step.reads:
        shape, dtype = (ROWS, tensor_width(model, name)), {"labels": np.int64, "masks": np.uint8}.get(name)
        rows[name] = random.standard_normal(shape, np.float32) if dtype is None else np.ones(shape, dtype)
    weights = {p.name: random.standard_normal(p.shape, np.float32) for p in model.parameters()}
    masks = Masks(seed=0, interval=0, epoch=1, training=True)
    return TaskInputs(rows, weights, masks, LossOptions((1.0,) * CLASSES, float(ROWS)))


def peak_bytes(model: Model, step: Step) -> int:
    inputs = inputs_of(model, step)
    tracemalloc.start()
    try:
        compute(model, step, inputs)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("hoist", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_the_largest_task_takes_no_more_than_is_said(name: str, hoist: bool):
    for layers in (1, 2, 3):
        for dropout in (0.0, 0.5):
            programs = programs_of(name, layers=layers, hoist=hoist, commute=True, dropout=dropout)
            steps = [step for step in programs.train.steps if step.kind is Kind.APPLY]
            said = max(ROWS * task_row_bytes(programs.model, step) for step in steps)
            taken = max(peak_bytes(programs.model, step) for step in steps)
            assert taken < said + FEW, (layers, dropout)
            assert said < 2.6 * taken, (layers, dropout)
