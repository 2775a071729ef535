"""A parameter server out of a job spec: its shard of the weights, and for number 0 the training clock; from the
beginning or from a checkpoint.
"""

from typing import Any

import numpy as np

from common.job_setup import GraphFacts, derive_programs, metric_of
from common.job_spec import JobSpec
from common.sharding import shard
from parameter_server.checkpoint import Checkpoint, CheckpointFolder
from parameter_server.checkpoint_files import shard_state
from parameter_server.checkpoint_keeper import CheckpointPlace
from parameter_server.clock_events import ClockSettings, check_valid_mask
from parameter_server.gradient_gate import window_of
from parameter_server.initial_weights import initial_weights
from parameter_server.interval_store import IntervalSteps, IntervalWeightStore
from parameter_server.optimizers import Optimizer, make_optimizer
from parameter_server.predicting_store import PredictingWeightStore
from parameter_server.same_job import job_record
from parameter_server.saved_state import Resumed
from parameter_server.training_clock import TrainingClock
from parameter_server.weight_store import WeightStore

EVAL_FREQUENCY = {"sync": 1, "pipe": 1, "async": 10}
"""For auto, in epochs: in async an evaluation costs one drained pipeline."""


def weight_store(
    spec: JobSpec,
    facts: GraphFacts,
    number: int,
    *,
    generation: int = 1,
    dtype: Any = np.float32,
    resumed: Checkpoint | None = None,
) -> WeightStore:
    training, count = spec.training, spec.cluster.num_parameter_servers
    widths = {"num_features": facts.num_features, "num_classes": facts.num_classes}
    model = derive_programs(spec, **widths, task=facts.task).model
    rows = shard(initial_weights(model.parameters(), training.seed, np.dtype(dtype)), count, number)
    start = None if resumed is None else Resumed(shard_state(resumed.state, count, number), resumed.clock)
    optimizer, staleness = _optimizer(spec, training.weight_decay), training.staleness
    if training.weight_update == "epoch":
        # Without staleness no pass lacks updates, and there is nothing to keep for a prediction.
        kind = PredictingWeightStore if training.weight_prediction and staleness else WeightStore
        return kind(rows, optimizer, facts.num_intervals, generation=generation, staleness=staleness, resumed=start)
    total = sum(facts.train_per_interval)
    steps = IntervalSteps(
        _optimizer(spec, training.weight_decay / facts.num_intervals),
        [total / count if count else 0.0 for count in facts.train_per_interval],
        leads=number == 0,
    )
    return IntervalWeightStore(rows, optimizer, steps, generation=generation, staleness=staleness, resumed=start)


def training_clock(
    spec: JobSpec, facts: GraphFacts, *, resumed: Checkpoint | None = None, saves: bool = False
) -> TrainingClock:
    """`saves`: whether there is somewhere for checkpoints to go."""
    settings = clock_settings(spec, facts, saves=saves)
    return TrainingClock(settings, facts.num_intervals, resumed=None if resumed is None else resumed.clock)


def clock_settings(spec: JobSpec, facts: GraphFacts, *, saves: bool = False) -> ClockSettings:
    """Raises SpecError if a setting needs a valid metric and the valid mask is empty."""
    training, frequency = spec.training, spec.training.eval_frequency
    settings = ClockSettings(
        num_epochs=training.num_epochs,
        eval_frequency=EVAL_FREQUENCY[training.mode] if frequency == "auto" else frequency,
        use_early_stop=training.use_early_stop,
        early_stop_rounds=training.early_stop_rounds,
        early_stop_min_delta=training.early_stop_min_delta,
        target_metric=training.target_metric,
        metric=metric_of(spec, facts.task),
        task=facts.task,
        staleness=training.staleness if training.mode == "async" else None,
        async_until=training.async_until,
        checkpoint_frequency=spec.output.save_model_frequency if saves else 0,
        gradient_window=_gradient_window(spec, facts),
    )
    check_valid_mask(settings, facts.num_valid)
    return settings


def checkpoint_place(
    spec: JobSpec,
    facts: GraphFacts,
    url: str | None,
    *,
    job_id: str = "",
    generation: int = 1,
    endpoint_url: str | None = None,
) -> CheckpointPlace | None:
    """None without a URL: no checkpoints are written."""
    if url is None:
        return None
    folder = CheckpointFolder(url, endpoint_url=endpoint_url, keep=spec.output.keep_checkpoints)
    record = job_record(spec, facts, job_id=job_id, generation=generation)
    return CheckpointPlace(folder, record, float(spec.output.checkpoint_seconds))


def _gradient_window(spec: JobSpec, facts: GraphFacts) -> int | None:
    """With one step per interval no gradient waits for those of other intervals."""
    if spec.training.weight_update == "interval":
        return None
    widths = {"num_features": facts.num_features, "num_classes": facts.num_classes}
    parameters = derive_programs(spec, **widths, task=facts.task).model.parameters()
    rows = shard(
        {each.name: np.empty(each.shape, np.float32) for each in parameters}, spec.cluster.num_parameter_servers, 0
    )
    return window_of(facts.num_intervals, sum(array.nbytes for array in rows.values()))


def _optimizer(spec: JobSpec, weight_decay: float) -> Optimizer:
    training = spec.training
    return make_optimizer(training.optimizer, training.lr, training.momentum, weight_decay)
