"""From sums to a loss and accuracies."""

import pytest

from common.errors import ScheduleError
from parameter_server.epoch_metrics import accuracy, training_loss


def test_loss_is_the_weighted_mean():
    assert training_loss({"loss": 3.0, "loss_weight": 4.0}) == 0.75
    assert training_loss({"loss": 0.0, "loss_weight": 0.0}) is None


def test_accuracy_of_an_empty_mask_is_none():
    sums = {"valid_correct": 3.0, "valid_count": 4.0, "test_correct": 0.0, "test_count": 0.0}
    assert [accuracy(sums, mask) for mask in ("train", "valid", "test")] == [None, 0.75, None]


def test_a_missing_sum_is_a_bug():
    with pytest.raises(ScheduleError) as caught:
        training_loss({"loss": 1.0})
    assert str(caught.value) == "a pass ended without the sum 'loss_weight'\n  why: its intervals reported loss"
    with pytest.raises(ScheduleError, match="'valid_correct'"):
        accuracy({"valid_count": 1.0}, "valid")
    with pytest.raises(ScheduleError, match="reported nothing"):
        training_loss({})
