"""What one server sees of the others, and when it gives up on them."""

import asyncio

import msgspec
import pytest

from common.errors import DatasetError, PeerLost
from common.role_start import Ended
from local_cloud.in_process import LAUNCHER
from local_cloud.on_instance import members as module
from local_cloud.on_instance import team as team_module
from local_cloud.on_instance.members import Members
from local_cloud.on_instance.team import Team

NAMES = ("parameter0", "graph0")


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    monkeypatch.setattr(team_module, "LOOK_SECONDS", 0.02)


@pytest.fixture
def teams(aws, instance):
    """Both servers, who have taken their roles."""
    made = {}
    for number, name in enumerate(NAMES):
        members = Members(aws, "small-members", instance(f"i-{number}"), NAMES)
        assert members.claim(f"key of {name}", f"launcher of {name}") == name
        made[name] = Team(members, name, NAMES)
    return made


def tell(teams, name, **news) -> None:
    teams[name].members.tell(name, news)


def listen(teams) -> None:
    for number, name in enumerate(NAMES):
        tell(teams, name, address=f"10.0.0.{number}", port=7077)


def test_a_team_comes_together(teams):
    async def run():
        team = teams["graph0"]
        rows = await team.everybody()
        tell(teams, "parameter0", checkpoint="s3://b/epoch-000010")
        checkpoint = await team.checkpoint()
        listen(teams)
        return team.proofs(rows), checkpoint, await team.addresses("server key")

    proofs, checkpoint, book = asyncio.run(run())
    assert proofs == {
        "parameter0": "key of parameter0",
        "graph0": "key of graph0",
        LAUNCHER: "launcher of parameter0",
    }
    assert checkpoint == "s3://b/epoch-000010"
    assert {name: one.endpoint for name, one in book.addresses.items()} == {
        "parameter0": "tcp://10.0.0.0:7077",
        "graph0": "tcp://10.0.0.1:7077",
    }
    assert {one.server_key for one in book.addresses.values()} == {"server key"}


def test_one_who_never_comes(aws, instance, monkeypatch):
    monkeypatch.setattr(team_module, "FORM_SECONDS", 0.1)
    members = Members(aws, "small-members", instance(), NAMES)
    team = Team(members, members.claim("key", "launcher"), NAMES)
    with pytest.raises(PeerLost, match="graph0 did not come"):
        asyncio.run(team.everybody())


def test_one_who_ends_says_why(teams):
    last_words = Ended("the labels are text", "no number", "convert them", "DatasetError")
    tell(teams, "graph0", ended=msgspec.json.encode(last_words).decode())
    with pytest.raises(DatasetError, match="the labels are text"):
        asyncio.run(teams["parameter0"].addresses("key"))


def test_one_who_is_silent_is_lost(teams, monkeypatch):
    listen(teams)
    late = module.time.time() + module.LOST_SECONDS + 5
    monkeypatch.setattr(module.time, "time", lambda: late)
    teams["parameter0"].members.beat("parameter0")
    with pytest.raises(PeerLost, match="graph0 has not been heard of"):
        asyncio.run(teams["parameter0"].watch(lambda name: None))


def test_one_who_leaves_is_told_of(teams):
    heard = []

    async def run():
        async with asyncio.timeout(0.3):
            await teams["parameter0"].watch(heard.append)

    tell(teams, "graph0", leaving=True)
    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert set(heard) == {"graph0"}


def test_the_end_is_the_leaders_to_say(teams):
    tell(teams, "parameter0", done=True)
    asyncio.run(teams["graph0"].until_done())
    with pytest.raises(PeerLost, match="has ended before it began"):
        asyncio.run(teams["graph0"].addresses("key"))
    tell(teams, "graph0", done=True)
    asyncio.run(teams["parameter0"].until_handed_in(60))
