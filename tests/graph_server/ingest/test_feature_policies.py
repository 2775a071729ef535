"""Features: checked, cast, normalised; never NaN, never Inf, never silently changed."""

import numpy as np
import pytest
import scipy.sparse

from common.errors import DatasetError
from graph_server.ingest.feature_policies import check_memory
from graph_server.ingest.memory import available_memory_bytes
from tests.graph_server.datasets.folders import applied, masks, raw_graph

SPLIT = masks([0, 1], [2], [3])


def featured(features, **options):
    usual = options.pop("usual", "none")
    return applied(raw_graph(features=features, masks=SPLIT, usual_normalization=usual), **options)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "i1", "i8", "u1", "?"])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_dtype_becomes_float32(dtype: str, sparse: bool):
    dense = np.array([[1, 0], [0, 1], [1, 1], [0, 0]]).astype(dtype)
    given = scipy.sparse.csr_matrix(dense) if sparse and dtype not in ("f2", ">f8") else dense
    dataset = featured(given)
    assert dataset.features.dtype == np.float32
    assert dataset.features.flags.c_contiguous
    assert dataset.features.tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]


def test_the_readers_array_is_left_alone():
    given = np.array([[2.0, 2.0]] * 4, dtype=np.float32)
    featured(given, normalize_features="row")
    assert given[0, 0] == 2


def test_rows_add_up_to_one_and_empty_rows_stay():
    dataset = featured(np.array([[1, 3], [0, 0], [5, 0], [1, 1]], dtype=np.float32), normalize_features="row")
    assert dataset.features.tolist() == [[0.25, 0.75], [0, 0], [1, 0], [0.5, 0.5]]


def test_auto_is_what_the_reader_declares():
    given = np.array([[1, 3], [0, 0], [5, 0], [1, 1]], dtype=np.float32)
    assert featured(given, usual="row").report["normalize_features"] == "row"
    assert featured(given, usual="none").features[0, 1] == 3
    assert featured(given, usual="row", normalize_features="none").features[0, 1] == 3


def test_a_row_that_adds_up_to_zero_cannot_be_divided():
    with pytest.raises(DatasetError, match="vertices 2 have features that add up to 0"):
        featured(np.array([[1, 3], [0, 0], [5, -5], [1, 1]], dtype=np.float32), normalize_features="row")


def test_standard_looks_at_train_rows_only():
    given = np.array([[1, 7], [3, 7], [100, 8], [2, 6]], dtype=np.float64)
    dataset = featured(given, normalize_features="standard")
    assert dataset.features.tolist() == [[-1, 0], [1, 0], [98, 1], [0, -1]]


def test_nan_is_refused_with_counts_and_rows():
    given = np.array([[1, np.nan], [0, 1], [np.nan, np.nan], [1, 1]])
    with pytest.raises(DatasetError) as error:
        featured(given)
    assert "3 feature values in 2 rows are NaN or empty: vertices 0, 2" in error.value.what
    assert "columns 0, 1" in error.value.why


def test_nan_is_filled_on_demand():
    given = np.array([[1, np.nan], [3, 4], [np.nan, np.nan], [1, 1]])
    assert featured(given, nan="zero").features.tolist() == [[1, 0], [3, 4], [0, 0], [1, 1]]
    filled = featured(given, nan="mean")
    assert filled.features.tolist() == [[1, 4], [3, 4], [2, 4], [1, 1]]
    assert filled.report["nan_features"] == 3


@pytest.mark.parametrize(
    ("value", "overflown"), [(1e39, "1 are finite in float64"), (np.inf, "0 are finite in float64")]
)
def test_what_float32_cannot_hold_is_refused(value: float, overflown: str):
    with pytest.raises(DatasetError, match="1 feature values are not finite in float32: vertices 1") as error:
        featured(np.array([[0, 1.0], [value, 1], [0, 0], [1, 1]]))
    assert overflown in error.value.why


def test_rounded_integers_are_a_warning():
    dataset = featured(np.array([[2**24 + 1], [1], [2], [3]]))
    assert "1 integer features are above 2^24" in dataset.report["warnings"][0]


@pytest.mark.parametrize("features", [None, np.zeros((4, 0))])
def test_no_features_are_refused(features):
    with pytest.raises(DatasetError, match="has no features for its 4 vertices") as error:
        featured(features)
    assert "dataset.features: degree or one_hot" in error.value.fix


def test_features_that_are_no_numbers_are_refused():
    with pytest.raises(DatasetError, match="features have dtype"):
        featured(np.array([["a"], ["b"], ["c"], ["d"]]))


def test_memory_is_checked_before_it_is_taken():
    with pytest.raises(DatasetError, match=r"features of 1000000 x 1000 need 4\.0 GB, 1\.0 GB are free"):
        check_memory(1_000_000, 1000, 1_000_000_000)
    assert available_memory_bytes() > 1 << 20
