"""What the doctor counts and finds among features."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from graph_server.ingest.doctor.diagnosis import FeatureFacts
from tests.graph_server.ingest.doctor.looks import codes, finding, look_at

MATRIX = np.array([[1.0, 7.0, 0.0], [np.nan, 7.0, -2.5], [np.inf, 7.0, 0.0], [0.0, 0.0, 0.0]])


def facts(features: Any, **options: Any) -> FeatureFacts:
    about = look_at(features=features, options=options).features
    assert about is not None
    return about


def test_counts():
    about = facts(MATRIX)
    assert (about.num_columns, about.dtype, about.num_nan, about.num_inf) == (3, "float64", 1, 1)
    assert (about.smallest, about.largest, about.zero_rows) == (-2.5, 7.0, 1)
    assert about.constant_columns == 0
    assert about.nonzero_share == 7 / 12


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "?"])
def test_sparse_and_dense_are_told_alike(dtype: str):
    dense = (np.arange(40).reshape(4, 10) % 3).astype(dtype)
    sparse = facts(scipy.sparse.csr_matrix(dense))
    assert sparse.is_sparse
    assert {**as_dict(sparse), "is_sparse": False} == as_dict(facts(dense))


def as_dict(about: FeatureFacts) -> dict[str, object]:
    return {name: getattr(about, name) for name in about.__struct_fields__}


def test_nan_is_refused_with_both_ways_out_and_noted_once_filled():
    features = np.array([[1.0], [np.nan], [2.0], [3.0]])
    assert finding(look_at(features=features), "features").options == ("dataset.nan: zero", "dataset.nan: mean")
    filled = look_at(features=features, options={"nan": "mean"})
    assert filled.accepted
    assert finding(filled, "filled_features").what == "1 feature values are NaN or empty, and are filled"


def test_what_stands_behind_nan_is_found_too():
    refused = [one.what for one in look_at(features=MATRIX).findings if one.level == "refused"]
    assert len(refused) == 2
    assert refused[0].startswith("1 feature values in 1 rows are NaN or empty: vertices 1")
    assert refused[1].startswith("1 feature values are not finite in float32: vertices 2")


def test_constant_columns_and_rows_of_zeros_are_named():
    diagnosis = look_at(features=np.array([[1, 5, 0], [2, 5, 0], [0, 5, 0], [3, 5, 0]]))
    assert finding(diagnosis, "constant_columns").rows == (1, 2)
    assert "zero_rows" not in codes(diagnosis)
    assert finding(look_at(features=np.array([[1], [0], [0], [3]])), "zero_rows").rows == (1, 2)


def test_scales_wide_apart_are_a_warning_unless_normalised():
    features = np.array([[0.001, 1e6], [0.002, 2e6], [0.003, 5e6], [0.004, 1e6]])
    assert finding(look_at(features=features), "scale").options == ("dataset.normalize_features: standard",)
    assert "scale" not in codes(look_at(features=features, options={"normalize_features": "standard"}))
    assert "scale" not in codes(look_at(features=features * [1, 1e-8]))


def test_large_numbers_that_differ_little_do_not_cancel():
    about = facts(np.array([[1e9], [1e9 + 1], [1e9], [1e9 + 1]]))
    assert (about.smallest_deviation, about.largest_deviation) == (0.5, 0.5)


def test_integers_that_float32_rounds_are_a_warning():
    features = np.array([[2**24 + 1], [3], [4], [5]])
    assert finding(look_at(features=features), "rounded_features").what == "1 integer features are above 2^24"


def test_without_features_there_are_ways_to_make_them_up():
    diagnosis = look_at(features=None)
    assert (diagnosis.features, diagnosis.num_features) == (None, None)
    assert finding(diagnosis, "features").options == ("dataset.features: degree", "dataset.features: one_hot")
    made_up = look_at(features=None, options={"features": "degree"})
    assert (made_up.accepted, made_up.num_features, made_up.features) == (True, 1, None)
