"""What an epoch was worth, as everybody is told of it."""

import msgspec


class EpochMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of weights version `epoch`.

    loss      of `train epoch`: weights epoch - 1, dropout on; sum of w_c·l over sum of w_c, over all train entries
    accuracy  of `evaluate epoch`: share of a mask's vertices; None if the mask is empty, there was no evaluation, or
              numbers are learnt
    metric    the same of training.metric, which may be the accuracy
    exact     False: measured while other epochs were in flight
    """

    epoch: int
    loss: float
    train_accuracy: float | None = None
    valid_accuracy: float | None = None
    test_accuracy: float | None = None
    train_metric: float | None = None
    valid_metric: float | None = None
    test_metric: float | None = None
    exact: bool = True
