"""A message as frames: it comes back as it was, and whatever else comes is a BadFrame and nothing worse."""

import contextlib
import math
import struct

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import BadFrame
from common.passes import evaluate, train
from common.wire import messages
from common.wire.frames import decode, encode
from tests.common.wire.message_strategies import KINDS, any_array, any_message, message_of
from tests.examples import examples

GHOSTS = messages.GhostRows(1, train(3), "source1", 4)


def header(message: object, *announced: object) -> bytes:
    """As on the wire, with any announcement."""
    return msgspec.msgpack.encode([message, list(announced)])


# ---- what comes back


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_every_message_comes_back(kind: type[messages.Message], data: st.DataObject):
    message, buffers = data.draw(message_of(kind)), data.draw(st.lists(any_array(), max_size=3))
    found, arrays = decode([bytes(frame) for frame in encode(message, buffers)])
    assert found == message
    assert type(found) is kind
    assert len(arrays) == len(buffers)
    for array, buffer in zip(arrays, buffers, strict=True):
        assert (array.dtype, array.shape) == (buffer.dtype, buffer.shape)
        assert array.tobytes() == buffer.tobytes()


def test_every_kind_of_message_has_its_own_tag():
    tags = [msgspec.inspect.type_info(kind).tag for kind in KINDS]
    assert len(set(tags)) == len(KINDS)
    assert set(KINDS) == set(messages.Message.__subclasses__())


def test_sums_that_are_not_finite_arrive_as_they_are():
    """The training clock judges them."""
    sums = {"loss": math.nan, "loss_weight": math.inf}
    found, _ = decode(encode(messages.IntervalFinished(1, train(1), 0, sums)))
    assert isinstance(found, messages.IntervalFinished)
    assert math.isnan(found.sums["loss"])
    assert found.sums["loss_weight"] == math.inf


def test_views_travel_as_the_rows_they_show():
    table = np.arange(24, dtype=np.float32).reshape(6, 4)
    for view in (table[::2], table[:, 1:3], table.T, table[:0]):
        _, (array,) = decode(encode(GHOSTS, [view]))
        np.testing.assert_array_equal(array, view)


def test_a_buffer_is_not_copied_and_what_arrives_cannot_be_written():
    sent = np.arange(6, dtype=np.float32).reshape(3, 2)
    _, (array,) = decode(encode(GHOSTS, [sent]))
    assert np.shares_memory(array, sent)
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1
    _, (empty,) = decode(encode(GHOSTS, [sent[:0]]))
    assert not empty.flags.writeable


# ---- what is refused


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.complex64, np.bool_, object])
def test_other_dtypes_are_refused_before_they_are_sent(dtype: type):
    with pytest.raises(BadFrame, match="the wire carries float32, float64, int64, uint8"):
        encode(GHOSTS, [np.zeros((2, 2), dtype)])


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"\xc1"],
        [b"\xff" * 40],
        [header({"type": "GhostRows"})],
        [header({"type": "Nonsense"})],
        [header({"type": "Done", "more": 1})],
        [header({"type": "PullWeights", "generation": -1, "version": 0})],
        [header({"type": "Refused", "reason": 3})],
        [header({"type": "GhostRows", "generation": 1, "pass_": [1, 9, 0], "table": "a", "interval": 0})],
        [msgspec.msgpack.encode({"message": 1})],
        [msgspec.msgpack.encode([{"type": "Done"}])],
        [b"\x92" * 100_000],  # deeper than anybody nests
        [b"\x92\x81\xa4type\xa4Done\xdd\xff\xff\xff\xff"],  # announces four thousand million buffers
        [b"\x92\x81\xa4type\xdb\xff\xff\xff\xff"],  # and a text of four gigabytes
        [b"\x92\x82\xa4type\xa7Refused\xa6reason\xa2\xff\xfe\x90"],  # no UTF-8
    ],
)
def test_a_header_that_does_not_decode_is_a_bad_frame(frames: list[bytes]):
    with pytest.raises(BadFrame, match="a message that does not decode"):
        decode(frames)


@pytest.mark.parametrize("count", [0, 2])
def test_another_number_of_buffers_than_announced(count: int):
    frames = [header({"type": "Rows"}, ["float32", [1]]), *[b"1234"] * count]
    with pytest.raises(BadFrame, match=f"{count} buffers") as error:
        decode(frames)
    assert error.value.why == "the message announces 1"


@pytest.mark.parametrize(
    ("announced", "size"),
    [
        (["float32", [2, 3]], 23),
        (["float32", [2, 3]], 25),
        (["float32", [2, 3]], 0),
        (["float64", [2, 3]], 24),
        (["uint8", []], 0),
        (["float32", [0, 3]], 4),
        (["float64", [2**62, 2**62]], 8),
        (["float64", [2**63, 2]], 0),
    ],
)
def test_a_buffer_that_is_not_as_long_as_announced(announced: list[object], size: int):
    with pytest.raises(BadFrame, match=f"a buffer of {size} bytes") as error:
        decode([header({"type": "Rows"}, announced), b"\0" * size])
    assert error.value.why.startswith(f"the message announces {announced[0]} (")


@pytest.mark.parametrize(
    "announced", [["float16", [1]], ["object", [1]], ["float32", [-1]], ["float32", [1.5]], ["float32", [1] * 65]]
)
def test_an_announcement_that_no_sender_makes(announced: list[object]):
    with pytest.raises(BadFrame):
        decode([header({"type": "Rows"}, announced), b"\0" * 4])


def test_an_empty_buffer_of_an_absurd_shape_costs_nothing():
    with pytest.raises(BadFrame, match="a buffer of shape"):
        decode([header({"type": "Rows"}, ["float64", [0, 2**62, 2**62]]), b""])


@settings(max_examples=examples(400))
@given(message=any_message(), buffers=st.lists(any_array(), max_size=2), data=st.data())
def test_spoilt_frames_are_a_bad_frame_or_another_message_and_never_another_error(
    message: messages.AnyMessage, buffers: list[np.ndarray], data: st.DataObject
):
    frames = [bytearray(frame) for frame in encode(message, buffers)]
    spoilt = data.draw(st.sampled_from(frames))
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()) and spoilt:
            spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
        else:
            del spoilt[data.draw(st.integers(0, len(spoilt))) :]
    _decodes_or_bad_frame([bytes(frame) for frame in frames])


@settings(max_examples=examples(400))
@given(frames=st.lists(st.binary(max_size=60), max_size=3))
def test_noise_is_a_bad_frame(frames: list[bytes]):
    _decodes_or_bad_frame(frames)


@pytest.mark.parametrize("count", [2**16, 2**31, 2**32 - 1])
def test_announced_lengths_are_not_believed(count: int):
    """As many names as no message has: nothing is allocated for them."""
    announced = b"\x83\xa4type\xa7Weights\xa7version\x01\xa5names\xdd" + struct.pack(">I", count)
    with pytest.raises(BadFrame):
        decode([b"\x92" + announced])


def test_passes_keep_their_order_on_the_wire():
    found = [decode(encode(messages.Clock(1, pass_)))[0] for pass_ in (train(2), evaluate(1), evaluate(2))]
    passes = [clock.pass_ for clock in found if isinstance(clock, messages.Clock)]
    assert sorted(passes) == [evaluate(1), train(2), evaluate(2)]  # type: ignore[type-var]


def _decodes_or_bad_frame(frames: list[bytes]) -> None:
    with contextlib.suppress(BadFrame):
        decode(frames)
