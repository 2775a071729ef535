"""An instance becomes a role once: by the first write, or by that of one who is silent."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from common.errors import ClusterError
from common.role_start import Ended
from local_cloud.on_instance import members as module
from local_cloud.on_instance.job_record import Superseded
from local_cloud.on_instance.members import Members

NAMES = ("parameter0", "graph0", "graph1")


@pytest.fixture
def joining(aws, instance):
    def made(id: str, *, generation: int = 1) -> Members:
        return Members(aws, "small-members", instance(id, generation=generation), NAMES)

    return made


def test_each_takes_the_next_role_and_one_too_many_finds_none(joining):
    assert [joining(f"i-{n}").claim(f"key{n}", f"launcher{n}") for n in range(3)] == list(NAMES)
    rows = joining("i-9").rows()
    assert {name: row.public_key for name, row in rows.items()} == dict(
        zip(NAMES, ("key0", "key1", "key2"), strict=True)
    )
    assert [row.launcher_key for row in rows.values() if row.launcher_key] == ["launcher0"]
    with pytest.raises(ClusterError, match="i-9 finds no role left"):
        joining("i-9").claim("key9", "launcher9")


def test_all_at_once_and_nobody_shares_a_role(joining):
    everybody = [joining(f"i-{n}") for n in range(3)]
    with ThreadPoolExecutor(3) as pool:
        taken = list(pool.map(lambda one: one.claim("key", "launcher"), everybody))
    assert sorted(taken) == sorted(NAMES)


def test_a_generation_knows_its_own_only(joining):
    joining("i-1").claim("old", "")
    assert joining("i-2", generation=2).rows() == {}
    assert joining("i-2", generation=2).claim("new", "") == "parameter0"
    assert joining("i-1").rows()["parameter0"].public_key == "old"


def test_an_instance_that_starts_again_has_its_own_role(joining):
    joining("i-1").claim("first", "")
    assert joining("i-1").claim("second", "") == "parameter0"
    assert joining("i-1").rows()["parameter0"].public_key == "second"


def test_the_role_of_one_who_is_silent_may_be_taken(joining, monkeypatch):
    """Its row still stands: what counts is the time in it."""
    joining("i-1").claim("key1", "")
    late = module.time.time() + module.LOST_SECONDS + 5
    monkeypatch.setattr(module.time, "time", lambda: late)
    assert joining("i-2").claim("key2", "") == "parameter0"
    with pytest.raises(Superseded, match="parameter0 is another instance's now"):
        joining("i-1").beat("parameter0")


def test_what_one_tells_the_others_read(joining):
    one = joining("i-1")
    name = one.claim("key", "launcher")
    assert one.rows()[name].checkpoint is None
    last_words = Ended("graph0 failed", "no space", "more disk", "DatasetError")
    one.tell(name, {"address": "10.0.0.7", "port": 7077, "checkpoint": "", "leaving": True})
    one.tell(name, {"ended": msgspec.json.encode(last_words).decode(), "done": True})
    row = joining("i-2").rows()[name]
    assert (row.endpoint, row.checkpoint, row.is_leaving, row.is_done) == ("tcp://10.0.0.7:7077", "", True, True)
    assert row.ended == last_words
    assert row.silent_seconds < 5
