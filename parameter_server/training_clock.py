"""The training clock opens one pass after another, in sync and pipe mode, and says when the job ends.

It is told when an interval has finished a pass, and with which sums. A report counts once, in any order; the last of a
pass closes it: that is a pause, nothing is in flight, and everything that looks at the whole job is decided there.

    train 1 · [evaluate 1] · train 2 · ... · evaluate n · predict n (with the best weights version)
"""

import enum
import math
from collections.abc import Mapping

import msgspec

from common.errors import ScheduleError, SpecError
from common.passes import Pass, PassKind, evaluate, predict, train
from parameter_server.best_version import BestVersion
from parameter_server.epoch_metrics import EpochMetrics, accuracy, training_loss
from parameter_server.tree_sum import sum_by_name


class ClockSettings(msgspec.Struct, frozen=True, kw_only=True):
    num_epochs: int
    eval_frequency: int = 1
    """Epochs between evaluations; 0: only at the end. The last epoch is always evaluated."""
    use_early_stop: bool = False
    early_stop_rounds: int = 20
    """Evaluations without improvement after which training ends."""
    early_stop_min_delta: float = 0.0
    target_metric: float | None = None
    """Training ends when the valid metric is at least as good."""
    higher_is_better: bool = True


class ClockState(enum.Enum):
    READY = "Ready"
    TRAINING = "Training"
    EVALUATING = "Evaluating"
    PREDICTING = "Predicting"
    COMPLETED = "Completed"
    STOPPED = "Stopped"
    FAILED = "Failed"


class Move(enum.Enum):
    TRAIN = "open the next train pass"
    EVALUATE = "open an evaluate pass"
    PREDICT = "open the predict pass"
    COMPLETE = "end, all done"
    STOP = "end, as requested"
    FAIL = "end, there is no way on"


TRANSITIONS = {
    (ClockState.READY, Move.TRAIN): ClockState.TRAINING,
    (ClockState.TRAINING, Move.TRAIN): ClockState.TRAINING,  # no evaluation is due
    (ClockState.TRAINING, Move.EVALUATE): ClockState.EVALUATING,
    (ClockState.TRAINING, Move.FAIL): ClockState.FAILED,
    (ClockState.EVALUATING, Move.TRAIN): ClockState.TRAINING,
    (ClockState.EVALUATING, Move.PREDICT): ClockState.PREDICTING,
    (ClockState.EVALUATING, Move.FAIL): ClockState.FAILED,
    (ClockState.PREDICTING, Move.COMPLETE): ClockState.COMPLETED,
    (ClockState.PREDICTING, Move.STOP): ClockState.STOPPED,
}


class PassOpened(msgspec.Struct, frozen=True):
    pass_: Pass


class EpochEnded(msgspec.Struct, frozen=True):
    metrics: EpochMetrics


class BestChanged(msgspec.Struct, frozen=True):
    """Keep `version`, then release `previous` (None: there was none)."""

    version: int
    previous: int | None


class Stopped(msgspec.Struct, frozen=True):
    """The last event. `state` is COMPLETED, STOPPED or FAILED; a failed job may have no best version."""

    state: ClockState
    reason: str
    best_version: int | None
    last_version: int


ClockEvent = PassOpened | EpochEnded | BestChanged | Stopped


def check_valid_mask(settings: ClockSettings, num_valid: int) -> None:
    """Call before the start. Raises SpecError if a setting needs a valid metric and no entry is in the valid mask."""
    key = "use_early_stop" if settings.use_early_stop else "target_metric"
    if num_valid == 0 and (settings.use_early_stop or settings.target_metric is not None):
        raise SpecError(
            what=f"training.{key} is set, but the valid mask is empty",
            why="it looks at the metric over the valid mask",
            fix=f"remove {key}, or give the dataset a valid mask (dataset.split)",
        )


class TrainingClock:
    def __init__(self, settings: ClockSettings, num_intervals: int) -> None:
        if settings.num_epochs < 1 or num_intervals < 1:
            raise ScheduleError(
                what=f"a clock over {settings.num_epochs} epochs and {num_intervals} intervals",
                why="there is at least one of each",
            )
        self._settings, self._num_intervals = settings, num_intervals
        self._state = ClockState.READY
        self._current: Pass | None = None
        self._closed: set[Pass] = set()
        self._reports: dict[int, Mapping[str, float]] = {}
        self._loss = math.nan
        self._best = BestVersion(higher_is_better=settings.higher_is_better, min_delta=settings.early_stop_min_delta)
        self._stop_requested = False
        self._ending: tuple[Move, str] | None = None

    @property
    def state(self) -> ClockState:
        return self._state

    @property
    def current(self) -> Pass | None:
        """The pass that is open now."""
        return self._current

    @property
    def best_version(self) -> int | None:
        return self._best.version

    def start(self) -> list[ClockEvent]:
        """Open `train 1`. Raises ScheduleError the second time."""
        if self._state is not ClockState.READY:
            self._raise_illegal("start")
        return self._open(Move.TRAIN, train(1))

    def stop_requested(self) -> None:
        """End at the next pause, with an evaluation of the weights reached and the predictions of the best."""
        self._stop_requested = True

    def interval_finished(self, pass_: Pass, interval: int, sums: Mapping[str, float]) -> list[ClockEvent]:
        """One interval's report; a repeat changes nothing and returns [].

        sums   train: loss (sum of w_c·l over its train entries), loss_weight (sum of w_c)
               evaluate: <mask>_correct, <mask>_count for train, valid, test
               a name that a report lacks is 0; other names are not used, but evaluate's may not be NaN or infinite

        Raises ScheduleError for a pass that was never opened or an interval that is not there.
        """
        if not 0 <= interval < self._num_intervals:
            self._raise_illegal(f"{pass_} finished by interval {interval} of {self._num_intervals}")
        if pass_ in self._closed:
            return []
        if pass_ != self._current:
            self._raise_illegal(f"{pass_} (weights version {pass_.weights_version}) finished by interval {interval}")
        self._reports.setdefault(interval, dict(sums))
        if len(self._reports) < self._num_intervals:
            return []
        return self._pass_ended(pass_, sum_by_name([self._reports[i] for i in range(self._num_intervals)]))

    def _pass_ended(self, pass_: Pass, totals: Mapping[str, float]) -> list[ClockEvent]:
        self._closed.add(pass_)
        self._current, self._reports = None, {}
        match pass_.kind:
            case PassKind.TRAIN:
                return self._train_ended(pass_.epoch, totals)
            case PassKind.EVALUATE:
                return self._evaluate_ended(pass_.epoch, totals)
            case PassKind.PREDICT:
                assert self._ending is not None  # no predict pass is opened without
                return self._end(*self._ending, last_version=pass_.epoch)

    def _train_ended(self, epoch: int, totals: Mapping[str, float]) -> list[ClockEvent]:
        loss = training_loss(totals)
        if loss is None:
            return self._end(Move.FAIL, "no train entry has a weight, so there is no loss", last_version=epoch)
        if not math.isfinite(loss):
            reason = f"the training loss of epoch {epoch} is {loss}; set a smaller training.lr"
            return self._end(Move.FAIL, reason, last_version=epoch)
        self._loss = loss
        if self._evaluation_is_due(epoch):
            return self._open(Move.EVALUATE, evaluate(epoch))
        return [EpochEnded(EpochMetrics(epoch=epoch, loss=loss)), *self._open(Move.TRAIN, train(epoch + 1))]

    def _evaluation_is_due(self, epoch: int) -> bool:
        frequency = self._settings.eval_frequency
        is_last = epoch == self._settings.num_epochs or self._stop_requested
        return is_last or (frequency > 0 and epoch % frequency == 0)

    def _evaluate_ended(self, epoch: int, totals: Mapping[str, float]) -> list[ClockEvent]:
        for name, total in totals.items():
            if not math.isfinite(total):
                reason = f"{name} in the evaluation of epoch {epoch} is {total}; set a smaller training.lr"
                return self._end(Move.FAIL, reason, last_version=epoch)
        train_accuracy, valid_accuracy, test_accuracy = (accuracy(totals, m) for m in ("train", "valid", "test"))
        metrics = EpochMetrics(
            epoch=epoch,
            loss=self._loss,
            train_accuracy=train_accuracy,
            valid_accuracy=valid_accuracy,
            test_accuracy=test_accuracy,
        )
        events: list[ClockEvent] = [EpochEnded(metrics)]
        previous = self._best.version
        if self._best.observe(epoch, valid_accuracy):
            events.append(BestChanged(epoch, previous))
        return events + self._go_on(epoch)

    def _go_on(self, epoch: int) -> list[ClockEvent]:
        self._ending = self._reason_to_end(epoch)
        if self._ending is None:
            return self._open(Move.TRAIN, train(epoch + 1))
        assert self._best.version is not None  # an evaluation has just been observed
        return self._open(Move.PREDICT, predict(epoch, self._best.version))

    def _reason_to_end(self, epoch: int) -> tuple[Move, str] | None:
        settings, best = self._settings, self._best
        if settings.target_metric is not None and best.reached(settings.target_metric):
            return Move.COMPLETE, f"the valid metric {best.metric:.4f} of epoch {epoch} reached the target"
        if epoch == settings.num_epochs:
            return Move.COMPLETE, f"all {epoch} epochs are done"
        if settings.use_early_stop and best.evaluations_without_improvement >= settings.early_stop_rounds:
            return Move.COMPLETE, f"no improvement in {settings.early_stop_rounds} evaluations (epoch {epoch})"
        return (Move.STOP, "stopped") if self._stop_requested else None

    def _open(self, move: Move, pass_: Pass) -> list[ClockEvent]:
        self._move(move)
        self._current = pass_
        return [PassOpened(pass_)]

    def _end(self, move: Move, reason: str, *, last_version: int) -> list[ClockEvent]:
        self._move(move)
        return [Stopped(self._state, reason, self._best.version, last_version)]

    def _move(self, move: Move) -> None:
        if (self._state, move) not in TRANSITIONS:
            self._raise_illegal(move.value)
        self._state = TRANSITIONS[self._state, move]

    def _raise_illegal(self, what: str) -> None:
        open_now = f"{self._current} with reports of intervals {sorted(self._reports)}" if self._current else "no pass"
        raise ScheduleError(
            what=f"the training clock was told: {what}", why=f"it is {self._state.value}, and open is {open_now}"
        )
