"""Slow lines and bad luck, made in user space."""

import msgspec
import pytest

from common.role_start import Weather
from common.wire.channel import Faults
from common.wire.pace import MAX_LINKS, Mischief, Shaping, SlowLink, SlowLinks


def test_messages_follow_each_other_over_one_line():
    link = SlowLink(Shaping(latency_seconds=0.5, bytes_per_second=100))
    assert link.seconds(200, now=10.0) == pytest.approx(2.5)
    assert link.seconds(100, now=10.0) == pytest.approx(3.5)
    assert link.seconds(100, now=20.0) == pytest.approx(1.5)


def test_latency_alone():
    link = SlowLink(Shaping(latency_seconds=0.25))
    assert [link.seconds(10**9, now=1.0) for _ in range(3)] == [pytest.approx(0.25)] * 3


def test_the_longest_beginning_of_a_name_counts():
    links = SlowLinks({"lease": Shaping(1.0), "lease7": Shaping(2.0)})
    assert links.seconds("lease1", "in", 5, 0.0) == 1.0
    assert links.seconds("lease71", "in", 5, 0.0) == 2.0
    assert links.seconds("graph1", "in", 5, 0.0) == 0.0


def test_each_peer_and_direction_has_its_own_line():
    links = SlowLinks({"lease": Shaping(0.0, bytes_per_second=1.0)})
    assert [links.seconds(*place, 3, 0.0) for place in (("lease0", "in"), ("lease0", "out"), ("lease1", "in"))] == [
        3.0
    ] * 3
    assert links.seconds("lease0", "in", 3, 0.0) == 6.0


def test_lines_of_peers_long_gone_are_forgotten():
    links = SlowLinks({"lease": Shaping(0.0, bytes_per_second=1.0)})
    for number in range(MAX_LINKS + 1):
        links.seconds(f"lease{number}", "in", 3, 0.0)
    assert links.seconds("lease1", "in", 3, 0.0) == 6.0
    assert links.seconds("lease0", "in", 3, 0.0) == 3.0


def test_mischief_is_drawn_from_its_seed():
    faults = Faults(loss=0.3, duplication=0.3, seed=4)
    draws = [Mischief(faults).copies() for _ in range(3)]
    assert len(set(draws)) == 1
    mischief = Mischief(faults)
    assert {mischief.copies() for _ in range(100)} == {0, 1, 2}
    assert {Mischief(None).copies() for _ in range(100)} == {1}


def test_a_role_is_told_of_a_line_without_limit():
    told = Weather(shaping={"lambda": Shaping(latency_seconds=0.1)})
    assert msgspec.json.decode(msgspec.json.encode(told), type=Weather) == told
