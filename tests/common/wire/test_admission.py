"""Who may speak to a listener."""

import pytest

from common.wire.admission import MAX_CONNECTIONS, MAX_FAULTS, MAX_STRANGERS, Admission, Hearing
from common.wire.credit import Window


@pytest.fixture
def admission():
    admission = Admission(Window(num_bytes=100, num_requests=4))
    admission.admit("graph1", "proof-1")
    admission.admit("lease5", "proof-5")
    return admission


def seated(admission, connection=b"c1", proof="proof-1"):
    assert admission.hear(connection, proof) is Hearing.UNKNOWN
    return admission.introduce(connection, proof)


def test_a_peer_says_hello_before_it_speaks(admission):
    seat = seated(admission)
    assert (seat.name, seat.proof) == ("graph1", "proof-1")
    assert admission.hear(b"c1", "proof-1") is Hearing.SPEAKS
    assert admission.seat(b"c1") is seat
    assert admission.name("proof-1") == "graph1"


def test_the_same_hello_twice_keeps_the_account(admission):
    seat = seated(admission)
    assert seat.credit.take(1, 60)
    assert admission.introduce(b"c1", "proof-1") is seat
    assert not seat.credit.take(2, 60)


def test_a_stranger_is_refused_and_then_dropped(admission):
    heard = [admission.hear(b"c9", "proof-9") for _ in range(MAX_FAULTS + 2)]
    assert heard == [Hearing.STRANGER] * MAX_FAULTS + [Hearing.DROPPED] * 2


def test_a_thief_is_known_and_its_victim_goes_on(admission):
    seated(admission)
    assert admission.hear(b"c1", "proof-5") is Hearing.THIEF
    for _ in range(MAX_FAULTS):
        admission.fault("proof-5")
    assert admission.struck == ("lease5",)
    for _ in range(MAX_FAULTS + 1):
        admission.hear(b"c1", "proof-5")
    assert admission.hear(b"c1", "proof-5") is Hearing.DROPPED
    assert admission.hear(b"c1", "proof-1") is Hearing.SPEAKS


def test_three_faults_strike(admission):
    seated(admission)
    assert [admission.fault("proof-1") for _ in range(MAX_FAULTS)] == [False, False, True]
    assert admission.name("proof-1") is None
    assert admission.seat(b"c1") is None
    assert admission.hear(b"c1", "proof-1") is Hearing.DROPPED
    assert admission.hear(b"another", "proof-1") is Hearing.STRANGER
    assert admission.struck == ("graph1",)


def test_an_expelled_lease_is_not_heard_and_was_not_struck(admission):
    seated(admission, b"c5", "proof-5")
    admission.expel("lease5")
    assert admission.hear(b"c5", "proof-5") is Hearing.DROPPED
    assert admission.struck == ()
    admission.expel("lease5")


def test_a_new_proof_replaces_the_old_one(admission):
    seated(admission)
    admission.admit("graph1", "proof-1b")
    assert admission.hear(b"c1", "proof-1") is Hearing.DROPPED
    assert admission.hear(b"c1", "proof-1b") is Hearing.UNKNOWN
    assert admission.name("proof-1b") == "graph1"


def test_admitting_again_changes_nothing(admission):
    seat = seated(admission)
    admission.admit("graph1", "proof-1")
    assert admission.seat(b"c1") is seat


def test_who_is_admitted_again_after_a_strike_says_hello_again(admission):
    seated(admission)
    admission.strike("graph1")
    admission.admit("graph1", "proof-1")
    assert admission.struck == ()
    assert admission.hear(b"c1", "proof-1") is Hearing.UNKNOWN
    assert [admission.fault("proof-1") for _ in range(MAX_FAULTS)] == [False, False, True]


def test_the_oldest_of_too_many_connections_is_forgotten(admission):
    connections = [b"c%d" % n for n in range(MAX_CONNECTIONS + 1)]
    for connection in connections:
        seated(admission, connection)
    assert admission.hear(connections[0], "proof-1") is Hearing.UNKNOWN
    assert [admission.hear(c, "proof-1") for c in connections[1:]] == [Hearing.SPEAKS] * MAX_CONNECTIONS


def test_strangers_are_counted_in_bounded_memory(admission):
    for number in range(MAX_STRANGERS + 10):
        for _ in range(MAX_FAULTS):
            assert admission.hear(b"s%d" % number, "nobody") is Hearing.STRANGER
    assert admission.hear(b"s%d" % (MAX_STRANGERS + 9), "nobody") is Hearing.DROPPED
    assert admission.hear(b"s0", "nobody") is Hearing.STRANGER


def test_a_new_listener_has_no_seats(admission):
    seated(admission)
    admission.clear_seats()
    assert admission.hear(b"c1", "proof-1") is Hearing.UNKNOWN
