"""What stands in checkpoints of tests: small states, and the job they are of."""

import numpy as np

from common.job_setup import GraphFacts
from common.job_spec import JobSpec
from parameter_server.checkpoint import CheckpointFolder
from parameter_server.checkpoint_files import shard_state
from parameter_server.same_job import job_record
from parameter_server.saved_state import ClockRecord, ShardState

SHAPES = {"layer0.bias": (5,), "layer0.weight": (7, 3), "one": (1, 2)}
SPEC = JobSpec.model_validate({"dataset": {"path": "cora"}, "training": {"num_epochs": 40}})
FACTS = GraphFacts(3, 2, 4, 5, (6, 7), "f" * 64, "c" * 64)
JOB = job_record(SPEC, FACTS, job_id="mine", generation=2)


def state_at(version: int, *, best: bool = True) -> ShardState:
    random = np.random.default_rng(version)

    def rows() -> dict[str, np.ndarray]:
        return {name: random.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}

    means, squares = rows(), rows()
    optimizer = {name: {"mean": means[name], "square": squares[name]} for name in SHAPES}
    return ShardState(version, rows(), optimizer, rows() if best else None)


def clock_at(epoch: int, best: int | None = None) -> ClockRecord:
    metric = None if best is None else 0.5 + best / 1000
    return ClockRecord(epoch=epoch, version=epoch, best_epoch=best, best_version=best, best_metric=metric)


def save(folder: CheckpointFolder, epoch: int, *, best: int | None = None, count: int = 2) -> ShardState:
    state = state_at(epoch, best=best is not None)
    files = [folder.write_shard(epoch, number, count, shard_state(state, count, number)) for number in range(count)]
    folder.commit(clock_at(epoch, best), files, JOB)
    return state


def bits(state: ShardState) -> list[tuple[str, str, tuple[int, ...], bytes]]:
    """All of a state, to the last bit."""
    groups = {"weights": state.weights, "best": state.best or {}, **state.optimizer}
    arrays = [(f"{group}/{name}", rows) for group, of in groups.items() for name, rows in of.items()]
    return sorted((name, str(rows.dtype), rows.shape, rows.tobytes()) for name, rows in arrays)
