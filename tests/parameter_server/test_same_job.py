"""A job goes on from its own checkpoint only, on whatever machine."""

import msgspec
import pytest

from common.errors import CheckpointError
from common.job_setup import GraphFacts
from common.job_spec import JobSpec
from common.spec_keys import keys
from parameter_server.same_job import DECIDING, MAY_CHANGE, check_same_job
from tests.parameter_server.checkpoints import FACTS, JOB, SPEC


def spec_with(**groups: dict[str, object]) -> JobSpec:
    tree = SPEC.model_dump(exclude_unset=True)
    return JobSpec.model_validate({**tree, **{name: {**tree.get(name, {}), **keys} for name, keys in groups.items()}})


def check(spec: JobSpec, facts: GraphFacts = FACTS) -> None:
    check_same_job(JOB, spec, facts, "runs/mine/checkpoints/epoch-000010")


def test_the_same_job():
    check(SPEC)


def test_the_machine_the_end_and_the_place_may_be_others():
    stops = {"num_epochs": 80, "use_early_stop": True, "early_stop_rounds": 3, "target_metric": 0.9}
    check(
        spec_with(
            dataset={"path": "elsewhere/cora"},
            training={**stops, "early_stop_min_delta": 0.1},
            cluster={"num_graph_servers": 9, "num_parameter_servers": 2},
            backend={"name": "lambda"},
            budget={"max_cost_usd": 1.0},
            output={"keep_checkpoints": 7},
        )
    )


def test_every_key_that_differs_is_named_with_both_values():
    with pytest.raises(CheckpointError) as error:
        check(spec_with(training={"lr": 0.5, "num_epochs": 7}, model={"hidden_size": [16]}, cut={"method": "hash"}))
    assert str(error.value) == (
        "the checkpoint runs/mine/checkpoints/epoch-000010 is of another job\n"
        "  why: cut.method is hash, and was stream; model.hidden_size is [16], and was 16; "
        "training.lr is 0.5, and was 0.01\n"
        "  fix: set it as it was, or start a new run"
    )


def test_every_key_that_decides_is_looked_at():
    deciding = {name for name in keys() if name.split(".")[0] in DECIDING}
    assert deciding > MAY_CHANGE
    assert set(JOB.keys) == deciding - MAY_CHANGE


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("fingerprint", "e" * 64, "the dataset has changed: its fingerprint is eeeeeeeeeeee, and was ffffffffffff"),
        ("cut_sha256", "d" * 64, "the graph is cut otherwise: cut_sha256 is dddddddddddd, and was cccccccccccc"),
    ],
)
def test_the_data_must_be_the_same(field: str, value: str, words: str):
    with pytest.raises(CheckpointError) as error:
        check(SPEC, msgspec.structs.replace(FACTS, **{field: value}))
    assert error.value.why == words
