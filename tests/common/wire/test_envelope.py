"""The first frame of every message."""

import random

import pytest

from common.wire.envelope import NO_TOKEN, Envelope, Kind, seal, unseal


@pytest.mark.parametrize("kind", Kind)
def test_round_trip(kind):
    token = bytes(range(16))
    assert unseal(seal(kind, 2**63, token)) == Envelope(kind, token, 2**63)
    assert unseal(seal(kind, 0)) == Envelope(kind, NO_TOKEN, 0)


def test_anything_else_is_no_envelope():
    good = seal(Kind.REQUEST, 7)
    assert unseal(b"") is None
    assert unseal(good[:-1]) is None
    assert unseal(good + b"x") is None
    assert unseal(b"\xff" + good[1:]) is None
    source = random.Random(5)
    for length in range(200):
        found = unseal(source.randbytes(length))
        assert found is None or length == len(good)


def test_it_does_not_show_its_token():
    assert repr(unseal(seal(Kind.HELLO, 9, b"0123456789abcdef"))) == "Envelope(HELLO, 9)"
