"""A parameter server out of a job spec: its shard of the initial weights, and for number 0 the training clock."""

from typing import Any

import numpy as np

from common.job_setup import GraphFacts, derive_programs
from common.job_spec import JobSpec
from common.sharding import shard
from parameter_server.initial_weights import initial_weights
from parameter_server.optimizers import make_optimizer
from parameter_server.training_clock import ClockSettings, TrainingClock, check_valid_mask
from parameter_server.weight_store import WeightStore


def weight_store(
    spec: JobSpec, facts: GraphFacts, number: int, *, generation: int = 1, dtype: Any = np.float32
) -> WeightStore:
    training = spec.training
    model = derive_programs(spec, num_features=facts.num_features, num_classes=facts.num_classes).model
    weights = initial_weights(model.parameters(), training.seed, np.dtype(dtype))
    optimizer = make_optimizer(training.optimizer, training.lr, training.momentum, training.weight_decay)
    rows = shard(weights, spec.cluster.num_parameter_servers, number)
    return WeightStore(rows, optimizer, facts.num_intervals, generation=generation)


def training_clock(spec: JobSpec, facts: GraphFacts) -> TrainingClock:
    return TrainingClock(clock_settings(spec, facts), facts.num_intervals)


def clock_settings(spec: JobSpec, facts: GraphFacts) -> ClockSettings:
    """Raises SpecError if a setting needs a valid metric and the valid mask is empty."""
    training = spec.training
    settings = ClockSettings(
        num_epochs=training.num_epochs,
        eval_frequency=1 if training.eval_frequency == "auto" else training.eval_frequency,
        use_early_stop=training.use_early_stop,
        early_stop_rounds=training.early_stop_rounds,
        early_stop_min_delta=training.early_stop_min_delta,
        target_metric=training.target_metric,
    )
    check_valid_mask(settings, facts.num_valid)
    return settings
