"""One optimizer step per interval and epoch, as with minibatches: the same steps in the same order on every shard.

Shard 0 leads: each interval's gradient, when all its parameters are there, gets the next place in *line*, and so does
each interval that begins an epoch. The others follow: they take what stands in line when its gradient has come. So
weights version n is the same step everywhere, and a beginning pins the version reached at its place, on every shard.

    line:   begin 0 · begin 1 · step 1 · begin 1 · step 0 · ...      version = steps taken so far
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from common.errors import ScheduleError
from common.passes import Pass
from parameter_server.optimizers import Optimizer
from parameter_server.saved_state import Resumed
from parameter_server.weight_store import Array, GradientKey, Pushed, WeightStore


class Place(NamedTuple):
    """An entry of the line."""

    interval: int
    epoch: int
    begins: bool


@dataclass(frozen=True)
class IntervalSteps:
    """optimizer  its weight decay is an interval's share of the whole
    scales     of each interval's gradient: train vertices of the graph over its own; 0: it has none, and makes no step
    leads      whether this shard gives the places
    """

    optimizer: Optimizer
    scales: Sequence[float]
    leads: bool


class IntervalWeightStore(WeightStore):
    """`optimizer` is that of one step per epoch: see `step_per_epoch`."""

    def __init__(
        self,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        steps: IntervalSteps,
        *,
        generation: int = 1,
        staleness: int = 0,
        resumed: Resumed | None = None,
    ) -> None:
        count = len(steps.scales)
        super().__init__(weights, optimizer, count, generation=generation, staleness=staleness, resumed=resumed)
        self._steps = steps
        self._gradients: dict[tuple[int, int], dict[str, Array]] = {}
        self._stepped = [self._epoch] * count
        """Each interval's newest epoch whose step is taken."""
        self._pins: dict[int, int] = {}
        self._line: deque[Place] = deque()
        self._lined_up = self._told = 0
        """Places given so far, and how many of them `news` has told."""
        self._news: list[Place] = []
        self._per_epoch_from: int | None = resumed.clock.epoch + 1 if resumed and resumed.clock.is_exact else None

    def _waiting_bytes(self) -> int:
        waiting = (array for gradients in self._gradients.values() for array in gradients.values())
        return super()._waiting_bytes() + sum(array.nbytes for array in waiting)

    def push(self, key: GradientKey, gradient: Array) -> Pushed:
        if self._is_per_epoch(key.pass_.epoch):
            return super().push(key, gradient)
        if key.generation < self._generation:
            return Pushed.TOO_LATE
        self._check_identity(key)
        whose, known = (key.interval, key.pass_.epoch), self._gradients.get((key.interval, key.pass_.epoch), {})
        if key.pass_.epoch <= self._stepped[key.interval]:
            return Pushed.REPEATED
        fresh = key.parameter not in known
        if fresh:
            self._check_gradient(key, gradient)
            self._stages[key.parameter] = key.stage
            self._gradients[whose] = {**known, key.parameter: np.array(gradient)}
            self._note_held_back()
            if self._steps.leads and self._is_complete(*whose):
                self._give_place(Place(*whose, begins=False))
        self._advance()
        return Pushed.ACCEPTED if fresh else Pushed.REPEATED

    # ---- the line

    def begin(self, interval: int, epoch: int) -> int:
        """The leader's: this interval begins an epoch now. The weights version it reads, pinned until its next one."""
        self._give_place(Place(interval, epoch, begins=True))
        self._advance()
        return self._pins[interval]

    def news(self) -> tuple[int, list[Place]]:
        """The leader's: the places given since the last call, and the number of the first of them."""
        told, news = self._told, self._news
        self._told, self._news = self._lined_up, []
        return told, news

    def line_up(self, place: int, entries: Sequence[Place]) -> None:
        """A follower's: entries from this place on. What it had heard of before counts once.

        Raises ScheduleError if entries are missing in between.
        """
        if place > self._lined_up:
            raise ScheduleError(f"place {place} of the line was told after place {self._lined_up - 1}")
        fresh = entries[self._lined_up - place :]
        self._line.extend(fresh)
        self._lined_up += len(fresh)
        self._advance()

    def step_per_epoch(self, epoch: int) -> None:
        """From this epoch on one step per epoch, as in `WeightStore`. At a pause only, when all steps are taken."""
        if self._per_epoch_from is None:
            self._per_epoch_from, self._epoch = epoch, epoch - 1
            self._pins.clear()

    def _give_place(self, place: Place) -> None:
        self._line.append(place)
        self._news.append(place)
        self._lined_up += 1

    def _advance(self) -> None:
        while self._line and (self._line[0].begins or self._is_complete(self._line[0].interval, self._line[0].epoch)):
            place = self._line[0]
            if place.begins:
                self._pins[place.interval] = self._version
                self._forget()
            else:
                self._take_step(place)
            self._line.popleft()

    def _take_step(self, place: Place) -> None:
        """If it is refused, nothing has changed, and whoever repeats a push hears the same."""
        whose, scale = (place.interval, place.epoch), self._steps.scales[place.interval]
        if scale:
            scaled = {
                name: (array.astype(np.float64) * scale).astype(array.dtype)
                for name, array in self._gradients[whose].items()
            }
            self._make_next_version(self._steps.optimizer, scaled, f"train {place.epoch} of interval {place.interval}")
        del self._gradients[whose]
        self._stepped[place.interval] = place.epoch
        self._epoch = min(self._stepped)

    def _is_complete(self, interval: int, epoch: int) -> bool:
        return self._gradients.get((interval, epoch), {}).keys() == self._states.keys()

    def _is_per_epoch(self, epoch: int) -> bool:
        return self._per_epoch_from is not None and epoch >= self._per_epoch_from

    def _is_open(self, pass_: Pass) -> bool:
        if self._is_per_epoch(pass_.epoch):
            return super()._is_open(pass_)
        # A follower may be behind by the line's last news.
        return 1 <= pass_.epoch <= self._epoch + 2 * (1 + self._staleness) and pass_.weights_version >= 0

    def _stashed(self) -> set[int]:
        return {self._version - 1, self._version, *self._pins.values()}
