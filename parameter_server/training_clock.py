"""The training clock says which pass is open for whom, and when the job ends. Pure.

It is told when an interval has finished a pass, and with which sums. A report counts once, in any order. When every
interval has finished the last epoch of a stretch nothing is in flight: that is a pause, and everything that looks at
the whole job is decided there. In sync and pipe a stretch is one epoch.

    train 1..n · [evaluate n] · [checkpoint] · train n+1.. · ... · evaluate · predict (with the best weights version)
"""

import enum
import math
from collections.abc import Mapping, Sequence

from common.epoch_metrics import EpochMetrics
from common.errors import ScheduleError
from common.passes import Pass, PassKind, predict
from parameter_server.best_version import BestVersion
from parameter_server.clock_events import (
    BecameExact,
    BestChanged,
    CheckpointDue,
    ClockEvent,
    ClockSettings,
    ClockState,
    EpochEnded,
    IntervalsMayBegin,
    MayEnd,
    PassOpened,
    Stopped,
)
from parameter_server.epoch_gate import EpochGate, Sums
from parameter_server.epoch_metrics import training_loss
from parameter_server.gradient_gate import GradientGate
from parameter_server.metrics import JudgedRows, epoch_metrics
from parameter_server.saved_state import ClockRecord
from parameter_server.tree_sum import sum_by_name


class Move(enum.Enum):
    TRAIN = "open the next train passes"
    EVALUATE = "open an evaluate pass"
    PREDICT = "open the predict pass"
    COMPLETE = "end, all done"
    STOP = "end, as requested"
    FAIL = "end, there is no way on"


TRANSITIONS = {
    (ClockState.READY, Move.TRAIN): ClockState.TRAINING,
    (ClockState.READY, Move.EVALUATE): ClockState.EVALUATING,  # resumed after its last epoch
    (ClockState.TRAINING, Move.TRAIN): ClockState.TRAINING,  # no evaluation is due
    (ClockState.TRAINING, Move.EVALUATE): ClockState.EVALUATING,
    (ClockState.TRAINING, Move.FAIL): ClockState.FAILED,
    (ClockState.EVALUATING, Move.TRAIN): ClockState.TRAINING,
    (ClockState.EVALUATING, Move.PREDICT): ClockState.PREDICTING,
    (ClockState.EVALUATING, Move.FAIL): ClockState.FAILED,
    (ClockState.PREDICTING, Move.COMPLETE): ClockState.COMPLETED,
    (ClockState.PREDICTING, Move.STOP): ClockState.STOPPED,
}


class TrainingClock:
    """`resumed`: where a checkpoint was taken; the first epoch is the one after it."""

    def __init__(self, settings: ClockSettings, num_intervals: int, *, resumed: ClockRecord | None = None) -> None:
        if settings.num_epochs < 1 or num_intervals < 1:
            raise ScheduleError(
                what=f"a clock over {settings.num_epochs} epochs and {num_intervals} intervals",
                why="there is at least one of each",
            )
        record = resumed or ClockRecord(epoch=0, version=0)
        self._settings, self._num_intervals = settings, num_intervals
        self._state = ClockState.READY
        self._epoch, self._version, self._first = record.epoch, record.version, record.epoch + 1
        self._is_exact = settings.staleness is None or record.is_exact
        self._gate: EpochGate | None = None
        self._order = GradientGate(num_intervals, settings.gradient_window, epoch=record.epoch)
        self._current: Pass | None = None
        self._granted: dict[int, Pass] = {}
        self._reports: dict[int, Sums] = {}
        self._rows: dict[int, JudgedRows] = {}
        self._loss = record.loss
        self._best = BestVersion(higher_is_better=settings.higher_is_better, min_delta=settings.early_stop_min_delta)
        self._best.resume(record)
        self._best_epoch = record.best_epoch
        self._stop_reason: str | None = None
        self._checkpoint_wanted = False
        self._saved = record.epoch
        self._ending: tuple[Move, str] | None = None

    @property
    def state(self) -> ClockState:
        return self._state

    @property
    def current(self) -> Pass | None:
        """The pass that is open now for all intervals; None in a stretch of async."""
        return self._current

    def so_far(self, newest: int) -> Stopped:
        """As if it broke off now, with this newest weights version."""
        reason = "it broke off"
        return Stopped(ClockState.FAILED, reason, self._best.version, newest, self._best_epoch, self._epoch)

    def start(self) -> list[ClockEvent]:
        """Open the first epoch. Raises ScheduleError the second time."""
        if self._state is not ClockState.READY:
            self._raise_illegal("start")
        if self._epoch >= self._settings.num_epochs:
            return self._evaluate(self._epoch)
        return [*self._may_end(), *self._train(self._first)]

    def stop_requested(self, reason: str = "stopped") -> None:
        """End at the next pause, with an evaluation of the weights reached and the predictions of the best."""
        self._stop_reason = self._stop_reason or reason
        self._pause_soon()

    def failed(self, reason: str) -> Stopped:
        """There is no way on, for a reason outside of training."""
        self._state, self._gate, self._current = ClockState.FAILED, None, None
        return Stopped(self._state, reason, self._best.version, self._version, self._best_epoch, self._epoch)

    def checkpoint_requested(self) -> None:
        """Take one at the next pause, which is to come soon."""
        self._checkpoint_wanted = True
        self._pause_soon()

    def interval_finished(
        self, pass_: Pass, interval: int, sums: Sums, *, rows: JudgedRows | None = None, newest: int | None = None
    ) -> list[ClockEvent]:
        """One interval's report; a repeat changes nothing and returns [].

        sums   train: loss (sum of w_c·l over its train entries), loss_weight (sum of w_c)
               both: what the metric is made of (metric_sums)
               a name that a report lacks is 0; other names are not used, but evaluate's may not be NaN or infinite
        rows   evaluate, of a metric that ranks them
        newest the newest weights version now; None: as many as epochs

        Raises ScheduleError for a pass that was never opened or an interval that is not there.
        """
        if not 0 <= interval < self._num_intervals:
            self._raise_illegal(f"{pass_} finished by interval {interval} of {self._num_intervals}")
        if self._is_over(pass_, interval):
            return []
        if pass_ != self._current and pass_ != self._granted.get(interval):
            self._raise_illegal(f"{pass_} (weights version {pass_.weights_version}) finished by interval {interval}")
        self._version = max(self._version, pass_.epoch if newest is None else newest)
        if pass_.kind is PassKind.TRAIN:
            return self._trained(pass_, interval, sums)
        self._reports.setdefault(interval, dict(sums))
        if rows is not None:
            self._rows.setdefault(interval, rows)
        if len(self._reports) < self._num_intervals:
            return []
        reports, self._reports = [self._reports[i] for i in range(self._num_intervals)], {}
        return self._pass_ended(pass_, reports)

    # ---- a stretch of epochs

    def _train(self, first: int) -> list[ClockEvent]:
        self._move(Move.TRAIN)
        staleness = 0 if self._is_exact else self._settings.staleness or 0
        last = first if self._is_exact else self._next_pause(first)
        self._gate = EpochGate(self._num_intervals, staleness=staleness, first=first, last=last)
        if self._stop_reason is not None or self._checkpoint_wanted:
            self._gate.close()
        granted = self._gate.begin(range(self._num_intervals))
        if not self._is_exact:
            return self._grants(granted)
        self._current = Pass(first, PassKind.TRAIN, self._version)
        return [PassOpened(self._current)]

    def _next_pause(self, first: int) -> int:
        settings = self._settings
        every = [n for n in (settings.eval_frequency, settings.checkpoint_frequency) if n > 0]
        return min([settings.num_epochs, *(-(-first // n) * n for n in every)])

    def _grants(self, granted: Sequence[tuple[int, int]]) -> list[ClockEvent]:
        if not granted:
            return []
        passes = tuple((interval, Pass(epoch, PassKind.TRAIN, self._version)) for interval, epoch in granted)
        self._granted.update(passes)
        return [IntervalsMayBegin(passes, exact_until=self._first)]

    def _pause_soon(self) -> None:
        if self._gate is not None and not self._is_exact:
            self._gate.close()

    def _trained(self, pass_: Pass, interval: int, sums: Sums) -> list[ClockEvent]:
        assert self._gate is not None
        events = self._may_end() if self._order.finished(interval, pass_.epoch) else []
        ended = self._gate.finished(interval, pass_.epoch, sums)
        for epoch, reports in ended:
            totals = sum_by_name(reports)
            if (failed := self._check_loss(epoch, totals)) is not None:
                return [*events, *failed]
            if epoch == self._gate.last:
                return [*events, *self._paused(totals)]
            events.append(EpochEnded(self._train_metrics(totals)))
        if not self._is_exact:
            events += self._grants(self._gate.begin(range(self._num_intervals) if ended else (interval,)))
        return events

    def _may_end(self) -> list[ClockEvent]:
        limit = self._order.ends_below
        return [] if limit is None else [MayEnd(limit)]

    def _check_loss(self, epoch: int, totals: Sums) -> list[ClockEvent] | None:
        self._epoch, loss = epoch, training_loss(totals)
        if loss is None:
            return self._end(Move.FAIL, "no train entry has a weight, so there is no loss")
        if not math.isfinite(loss):
            return self._end(Move.FAIL, f"the training loss of epoch {epoch} is {loss}; set a smaller training.lr")
        self._loss = loss
        return None

    def _train_metrics(self, totals: Sums) -> EpochMetrics:
        """Of the training's own forward: dropout on, weights as they were, and in async rows of several epochs."""
        return self._metrics(totals, exact=False)

    def _metrics(self, totals: Sums, rows: Sequence[JudgedRows] = (), *, exact: bool) -> EpochMetrics:
        plain = EpochMetrics(epoch=self._epoch, loss=self._loss, exact=exact)
        return epoch_metrics(plain, self._settings.metric, self._settings.task, totals, rows)

    # ---- pauses

    def _paused(self, totals: Sums) -> list[ClockEvent]:
        self._gate, self._current, self._granted = None, None, {}
        epoch = self._epoch
        if self._is_due(epoch):
            return self._evaluate(epoch)
        if self._stop_reason is not None or epoch == self._settings.num_epochs:
            # What was not due is not remembered: a resumed run goes on as if it had never been stopped.
            return [*self._checkpoint(is_wanted=True), *self._evaluate(epoch)]
        return [EpochEnded(self._train_metrics(totals)), *self._checkpoint(), *self._train(epoch + 1)]

    def _is_due(self, epoch: int) -> bool:
        frequency = self._settings.eval_frequency
        return frequency > 0 and epoch % frequency == 0

    def _evaluate(self, epoch: int) -> list[ClockEvent]:
        return self._open(Move.EVALUATE, Pass(epoch, PassKind.EVALUATE, self._version))

    def _checkpoint(self, *, is_wanted: bool = False) -> list[ClockEvent]:
        frequency, epoch = self._settings.checkpoint_frequency, self._epoch
        is_due = frequency > 0 and (is_wanted or self._checkpoint_wanted or epoch % frequency == 0)
        if not is_due or self._saved == epoch:
            return []
        self._saved, self._checkpoint_wanted = epoch, False
        return [CheckpointDue(self._record())]

    def _record(self) -> ClockRecord:
        best = self._best
        return ClockRecord(
            epoch=self._epoch,
            version=self._version,
            loss=self._loss,
            best_epoch=self._best_epoch,
            best_version=best.version,
            best_metric=best.metric,
            reference=best.reference,
            evaluations_without_improvement=best.evaluations_without_improvement,
            is_exact=self._is_exact,
        )

    def _pass_ended(self, pass_: Pass, reports: Sequence[Sums]) -> list[ClockEvent]:
        self._current = None
        if pass_.kind is PassKind.EVALUATE:
            return self._evaluated(pass_, sum_by_name(reports))
        assert self._ending is not None  # no predict pass is opened without
        return self._end(*self._ending)

    def _evaluated(self, pass_: Pass, totals: Mapping[str, float]) -> list[ClockEvent]:
        for name, total in totals.items():
            if not math.isfinite(total):
                reason = f"{name} in the evaluation of epoch {pass_.epoch} is {total}; set a smaller training.lr"
                return self._end(Move.FAIL, reason)
        metrics = self._metrics(totals, [self._rows[interval] for interval in sorted(self._rows)], exact=True)
        self._rows = {}
        events: list[ClockEvent] = [EpochEnded(metrics)]
        previous = self._best.version
        if self._best.observe(pass_.weights_version, metrics.valid_metric):
            self._best_epoch = pass_.epoch
            events.append(BestChanged(pass_.weights_version, previous))
        return [*events, *self._go_on(pass_.epoch)]

    def _go_on(self, epoch: int) -> list[ClockEvent]:
        self._ending, until = self._reason_to_end(epoch), self._settings.async_until
        becomes_exact = not self._is_exact and until is not None and self._best.reached(until)
        self._is_exact = self._is_exact or becomes_exact
        events: list[ClockEvent] = [BecameExact(epoch + 1, self._version)] if becomes_exact else []
        events += self._checkpoint(is_wanted=self._ending is not None)
        if self._ending is None:
            return [*events, *self._train(epoch + 1)]
        assert self._best.version is not None  # an evaluation has just been observed
        return [*events, *self._open(Move.PREDICT, predict(epoch, self._best.version))]

    def _reason_to_end(self, epoch: int) -> tuple[Move, str] | None:
        settings, best = self._settings, self._best
        if settings.target_metric is not None and best.reached(settings.target_metric):
            return Move.COMPLETE, f"the valid metric {best.metric:.4f} of epoch {epoch} reached the target"
        if epoch >= settings.num_epochs:
            return Move.COMPLETE, f"all {epoch} epochs are done"
        if settings.use_early_stop and best.evaluations_without_improvement >= settings.early_stop_rounds:
            return Move.COMPLETE, f"no improvement in {settings.early_stop_rounds} evaluations (epoch {epoch})"
        return None if self._stop_reason is None else (Move.STOP, self._stop_reason)

    def _open(self, move: Move, pass_: Pass) -> list[ClockEvent]:
        self._move(move)
        self._current = pass_
        return [PassOpened(pass_)]

    def _end(self, move: Move, reason: str) -> list[ClockEvent]:
        self._move(move)
        self._gate = self._current = None
        return [
            Stopped(self._state, reason, self._best.version, self._version, self._best_epoch, self._epoch),
        ]

    # ---- what is legal

    def _is_open(self) -> bool:
        return self._current is not None or self._gate is not None

    def _is_over(self, pass_: Pass, interval: int) -> bool:
        """Its report has counted: this one is a repeat."""
        if self._state in (ClockState.COMPLETED, ClockState.STOPPED, ClockState.FAILED):
            return True
        now = self._current or self._granted.get(interval)
        if now is None:  # at a pause
            return pass_.epoch <= self._epoch
        return (pass_.epoch, pass_.kind) < (now.epoch, now.kind)

    def _move(self, move: Move) -> None:
        if (self._state, move) not in TRANSITIONS:
            self._raise_illegal(move.value)
        self._state = TRANSITIONS[self._state, move]

    def _raise_illegal(self, what: str) -> None:
        reported = sorted(self._gate.reported if self._gate else self._reports)
        open_now = f"{self._current or 'train'} with reports of intervals {reported}" if self._is_open() else "no pass"
        raise ScheduleError(
            what=f"the training clock was told: {what}", why=f"it is {self._state.value}, and open is {open_now}"
        )
