"""How much may be unanswered."""

from hypothesis import given
from hypothesis import strategies as st

from common.wire.credit import Credit, Window


def test_bytes_come_back_with_the_reply():
    credit = Credit(Window(num_bytes=100, num_requests=10))
    assert credit.take(1, 60)
    assert not credit.take(2, 41)
    assert credit.take(3, 40)
    credit.give(1)
    assert credit.num_bytes == 40
    assert credit.take(2, 60)
    assert credit.numbers == (3, 2)


def test_the_number_of_requests_is_bounded_too():
    credit = Credit(Window(num_bytes=100, num_requests=2))
    assert [credit.take(n, 0) for n in range(3)] == [True, True, False]


def test_what_is_taken_is_taken_once_and_given_once():
    credit = Credit(Window(num_bytes=100))
    assert credit.take(1, 60)
    assert credit.take(1, 60)
    assert 1 in credit
    credit.give(1)
    credit.give(1)
    assert credit.num_bytes == 0
    assert 1 not in credit


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 60))))
def test_never_over_the_window_and_never_below_nothing(steps):
    credit, held = Credit(Window(num_bytes=100, num_requests=5)), dict[int, int]()
    for is_take, number, size in steps:
        if not is_take:
            credit.give(number)
            held.pop(number, None)
        elif credit.take(number, size):
            held.setdefault(number, size)
        assert credit.num_bytes == sum(held.values()) <= 100
        assert set(credit.numbers) == set(held)
        assert len(held) <= 5
