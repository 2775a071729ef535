"""The hash of weights is of names, types, shapes and values alone."""

import hashlib

import numpy as np

from common.weights_hash import weights_sha256

WEIGHTS = {
    "layer1.bias": np.array([1.0, -2.0], np.float32),
    "layer0.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
}


def test_the_bytes_are_those_of_the_description():
    expected = hashlib.sha256(
        b"layer0.weight\0float32\x002,3\0"
        + b"".join(np.float32(x).astype("<f4").tobytes() for x in range(6))
        + b"layer1.bias\0float32\x002\0\0\0\x80\x3f\0\0\0\xc0"
    )
    assert weights_sha256(WEIGHTS) == expected.hexdigest()


def test_neither_order_nor_layout_matter():
    turned = {name: np.asfortranarray(WEIGHTS[name]).astype(">f4") for name in sorted(WEIGHTS)}
    assert weights_sha256(turned) == weights_sha256(WEIGHTS)


def test_every_part_matters():
    weight = WEIGHTS["layer0.weight"]
    others = [
        WEIGHTS | {"layer0.weight": weight.reshape(3, 2)},
        WEIGHTS | {"layer0.weight": weight.astype(np.float64)},
        WEIGHTS | {"layer0.weight": np.where(weight == 5, np.nextafter(np.float32(5), np.float32(6)), weight)},
        {"layer0.weights": weight, "layer1.bias": WEIGHTS["layer1.bias"]},
        {"layer0.weight": weight},
    ]
    hashes = {weights_sha256(other) for other in [WEIGHTS, *others]}
    assert len(hashes) == 1 + len(others)
