"""Masks are a function of (seed, layer, interval, epoch), bit for bit, and no two of them are related."""

import hashlib
import struct

import numpy as np
import pytest

from common.saga.masks import Masks, attention_key, keep_mask, scale, threshold
from graph_server.graph.attention_kernels import keep

GOLDEN = {
    # (seed, layer, interval, epoch): the first 16 bytes of the stream
    (0, 0, 0, 1): "0bf53d44f8e1e96c440a6ded79134836",
    (7, 1, 11, 200): "a1e078ce552f690711e3c9a02f567e8a",
    (-3, 2, 4095, 1): "88727ff3fb6eb3038d9804a21a27018c",
}
MANY = (500, 256)


def mask(shape=MANY, rate=0.5, *, seed=0, layer=0, interval=0, epoch=1):
    return keep_mask(shape, rate, seed=seed, layer=layer, interval=interval, epoch=epoch)


@pytest.mark.parametrize(("where", "stream"), GOLDEN.items())
def test_golden_bytes(where, stream):
    """Byte for byte: every threshold from 1 to 255 keeps exactly the bytes that are not below it."""
    seed, layer, interval, epoch = where
    expected = np.frombuffer(bytes.fromhex(stream), np.uint8)
    for limit in range(1, 256):
        kept = mask((4, 4), limit / 256, seed=seed, layer=layer, interval=interval, epoch=epoch)
        assert kept.reshape(-1).tolist() == (expected >= limit).tolist()


def test_the_stream_is_philox_with_the_epoch_in_the_highest_word():
    """Put together by hand: the key as two words, the counter as four."""
    digest = hashlib.blake2b(struct.pack("<qqq", 5, 1, 3), digest_size=16).digest()
    counter = np.array([0, 0, 0, 17], np.uint64)
    philox = np.random.Philox(key=np.frombuffer(digest, "<u8"), counter=counter)
    stream = philox.random_raw(5).astype("<u8").tobytes()[:35]
    kept = mask((5, 7), 0.3, seed=5, layer=1, interval=3, epoch=17)
    assert kept.reshape(-1).tolist() == [byte >= 77 for byte in stream]


def test_a_wider_mask_is_not_a_longer_row():
    """Row r begins at byte r · width: the rows of two widths share the stream, not the columns."""
    wide, narrow = mask((3, 10)), mask((6, 5))
    assert wide.reshape(-1).tolist() == narrow.reshape(-1).tolist()


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (1, 1), (1, 8), (1, 9), (3, 5)])
def test_any_shape(shape):
    kept = mask(shape)
    assert kept.shape == shape
    assert kept.dtype == np.bool_


RELATED = {
    "the next epoch": {"epoch": 2},
    "an epoch far away": {"epoch": 1000},
    "the next interval": {"interval": 1},
    "the next layer": {"layer": 1},
    "the next seed": {"seed": 1},
}


@pytest.mark.parametrize("other", RELATED.values(), ids=RELATED.keys())
def test_neighbouring_masks_are_independent(other):
    """Correlation of 128,000 fair bits: 5 standard deviations are 0.014. At no shift of up to 64 words either."""
    first, second = mask().reshape(-1) * 2.0 - 1, mask(**other).reshape(-1) * 2.0 - 1
    for shift in range(65):
        a, b = first[8 * shift :], second[: second.size - 8 * shift]
        assert abs(float(a @ b) / a.size) < 0.015
        assert abs(float(first[: b.size] @ second[8 * shift :]) / a.size) < 0.015


@pytest.mark.parametrize("other", RELATED.values(), ids=RELATED.keys())
def test_neighbouring_streams_share_no_block(other):
    """Had the epoch been a low word of the counter, one stream would begin a block after the other."""

    def blocks(**where):
        bytes_ = np.packbits(mask((2048, 32), **where), axis=1)
        return {row.tobytes() for row in bytes_}

    assert not blocks() & blocks(**other)


@pytest.mark.parametrize(
    ("rate", "limit"), [(0.0, 0), (0.001, 0), (0.002, 1), (0.5, 128), (0.6, 154), (0.1, 26), (0.998, 255)]
)
def test_threshold_and_scale(rate, limit):
    assert threshold(rate) == limit
    assert scale(rate) == 256 / (256 - limit)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.6])
def test_the_share_that_is_dropped(rate):
    dropped = 1 - mask(rate=rate).mean()
    assert abs(dropped - threshold(rate) / 256) < 5 * 0.5 / np.sqrt(np.prod(MANY))


def masks(*, training=True, epoch=1):
    return Masks(seed=0, interval=0, epoch=epoch, training=training)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_drop_multiplies_by_the_scale_or_by_zero(dtype):
    x = np.linspace(1, 2, 60, dtype=dtype).reshape(12, 5)
    dropped = masks().drop(x, 0.6, layer=0)
    kept = mask((12, 5), 0.6)
    assert dropped.dtype == dtype
    assert np.array_equal(dropped[kept], x[kept] * dtype(256 / 102))
    assert not dropped[~kept].any()
    assert 0 < kept.sum() < 60


def test_a_dropped_value_keeps_its_sign_and_what_is_no_number_stays_none():
    """The bits of x times 0 or 1, times the scale."""
    x = np.tile(np.array([1.5, -1.5, 0.0, -0.0, 1e-40, np.inf, -np.inf, np.nan], np.float32), (50, 8))
    with np.errstate(invalid="ignore"):
        expected = x * mask(x.shape, 0.5) * np.float32(scale(0.5))
        dropped = masks().drop(x, 0.5, layer=0)
    number = ~np.isnan(expected)
    assert np.array_equal(np.isnan(dropped), ~number)
    assert np.array_equal(dropped.view(np.uint32)[number], expected.view(np.uint32)[number])


def test_forward_and_vjp_of_a_task_see_one_mask():
    one_task = masks()
    x = np.ones((12, 5), np.float32)
    assert np.array_equal(one_task.drop(x, 0.5, layer=0), one_task.drop(x, 0.5, layer=0))
    assert not np.array_equal(one_task.drop(x, 0.5, layer=0), one_task.drop(x, 0.5, layer=1))
    assert not np.array_equal(one_task.drop(x, 0.5, layer=0), masks(epoch=2).drop(x, 0.5, layer=0))


@pytest.mark.parametrize(("training", "rate"), [(False, 0.5), (True, 0.0), (True, 0.001)])
def test_nothing_is_dropped_outside_training_or_at_rate_zero(training, rate):
    x = np.ones((12, 5), np.float32)
    assert masks(training=training).drop(x, rate, layer=0) is x


# ---- attention


def test_golden_attention_key():
    assert attention_key(5, 3, 1, 9) == int.from_bytes(bytes.fromhex("43ea27923a16612a"), "little")


def test_eight_heads_share_a_key():
    keys = [attention_key(0, 1, 0, head) for head in range(17)]
    assert [keys.index(key) for key in keys] == [0] * 8 + [8] * 8 + [16]
    others = {attention_key(0, 2, 0, 0), attention_key(1, 1, 0, 0), attention_key(0, 1, 1, 0)}
    assert len(others | {keys[0]}) == 4


def plain_splitmix64(x: int) -> int:
    """In whole numbers, from the published algorithm."""
    z = (x + 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def test_splitmix64_is_the_published_one():
    """The generator's first outputs from state 0."""
    states = [n * 0x9E3779B97F4A7C15 % 2**64 for n in range(3)]
    assert [plain_splitmix64(x) for x in states] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


EDGES = [(0, 0), (0, 1), (1, 0), (2707, 13), (2**31 + 5, 2**40)]


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("head", [0, 1, 7, 8, 15, 16])
def test_an_edges_byte(edge, head):
    source, target = edge
    keys = np.array([attention_key(0, 1, 0, h) for h in (0, 8, 16)], np.uint64)
    word = plain_splitmix64((plain_splitmix64((int(keys[head // 8]) + source) % 2**64) + target) % 2**64)
    byte = word.to_bytes(8, "little")[head % 8]
    for limit in (max(byte, 1), byte + 1):
        assert keep(keys, limit, source, target, head) == (byte >= limit)


@pytest.mark.parametrize("source", range(3))
def test_golden_attention_bytes(source):
    """Of the edges 0, 1, 2 -> 3, heads 0 to 7, seed 5, epoch 3, layer 1 (heads 8 to 15 there)."""
    words = ("7c44b275dc6133e9", "ed188270fe5cbb4f", "b0ed2d85bd47a945")
    keys = np.array([0, attention_key(5, 3, 1, 8)], np.uint64)
    for head, byte in enumerate(bytes.fromhex(words[source]), start=8):
        assert keep(keys, byte, source, 3, head)
        assert not keep(keys, byte + 1, source, 3, head)


def test_attention_dropout_of_two_epochs_is_independent():
    def kept(epoch: int) -> np.ndarray:
        keys = np.array([attention_key(0, epoch, 0, 0)], np.uint64)
        return np.array([keep(keys, 128, u, v, h) for u in range(40) for v in range(40) for h in range(8)]) * 2.0 - 1

    first, second = kept(1), kept(2)
    assert abs(first.mean()) < 0.045
    assert abs((first * second).mean()) < 0.045
