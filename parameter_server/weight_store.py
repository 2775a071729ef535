"""One shard of the weights: gradients in, versions out.

Version 0 is what it is given. When every interval's gradient of every parameter of `train e` is there, exactly one
optimizer step on their tree-ordered float64 sum, rounded once, makes version e. A gradient counts once, however often
and in whatever order it comes, so a task may be repeated; versions are read-only and never change.

The stash: kept are the versions that somebody asked to keep, and the newest staleness + 2. No interval needs an older
one: it reads a version of staleness + 1 epochs ago at the oldest, and without its own gradient of epoch e none of e is
made. Source: PipeDream (SOSP'19), weight stashing.

A shard without rows takes (empty) gradients like any other: every client tells every shard, so all count alike.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt

from common.errors import BadFrame, ModelError, ScheduleError, TensorTaskError
from common.passes import Pass, PassKind
from parameter_server.optimizers import Optimizer, State
from parameter_server.saved_state import Resumed, ShardState
from parameter_server.tree_sum import TreeSum

Array = npt.NDArray[Any]


class GradientKey(msgspec.Struct, frozen=True):
    """Identity of a gradient: that of its task, and the parameter."""

    generation: int
    pass_: Pass
    stage: str
    interval: int
    parameter: str


class Pushed(enum.Enum):
    ACCEPTED = "accepted"
    REPEATED = "repeated"
    """It had been accepted before; nothing changed."""
    TOO_LATE = "too late"
    """It belongs to an older generation; nothing changed, and its sender should end."""


class TooLate(TensorTaskError):
    """The weights version asked for is gone."""


class WeightStore:
    """One parameter server's rows of every parameter.

    weights     name -> float32 or float64 rows, copied
    generation  gradients of an older one are TOO_LATE
    staleness   epochs by which intervals may be apart, less one
    resumed     go on from this checkpoint; `weights` are then not looked at
    """

    def __init__(
        self,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        num_intervals: int,
        *,
        generation: int = 1,
        staleness: int = 0,
        resumed: Resumed | None = None,
    ) -> None:
        if not weights:
            raise ModelError(what="the model has no parameters", why="there is nothing to train", fix="add a layer")
        self._optimizer, self._num_intervals, self._generation = optimizer, num_intervals, generation
        self._staleness, self._epoch, self._version = staleness, 0, 0
        """_epoch: the newest that made a version."""
        self._versions = {0: _copies(weights)}
        self._states = {name: optimizer.state(rows.shape, rows.dtype) for name, rows in self._versions[0].items()}
        self._kept: set[int] = set()
        self.stash_bytes = 0
        """Of all versions but the newest, at their most."""
        self.held_back_bytes = 0
        """Of gradients that waited for others, at their most."""
        self._stages: dict[str, str] = {}
        if resumed is not None:
            self._resume(resumed)
        self._sums: dict[int, dict[str, TreeSum]] = {}

    @property
    def version(self) -> int:
        """The newest version."""
        return self._version

    @property
    def versions(self) -> tuple[int, ...]:
        """All that can be pulled, oldest first."""
        return tuple(sorted(self._versions))

    @property
    def held_bytes(self) -> int:
        """Bytes of all versions, of the optimizer's state and of gradients that wait for the rest of their epoch."""
        arrays = [rows for weights in self._versions.values() for rows in weights.values()]
        arrays += [array for state in self._states.values() for array in state.values()]
        return sum(array.nbytes for array in arrays) + self._waiting_bytes()

    def _waiting_bytes(self) -> int:
        return sum(tree.held_bytes for sums in self._sums.values() for tree in sums.values())

    def _note_held_back(self) -> None:
        self.held_back_bytes = max(self.held_back_bytes, self._waiting_bytes())

    def _stash_bytes(self) -> int:
        older = [weights for version, weights in self._versions.items() if version != self._version]
        return sum(rows.nbytes for weights in older for rows in weights.values())

    def received(self, epoch: int) -> int:
        """How many gradients of `train epoch` have counted."""
        if epoch > self._epoch:
            return sum(tree.num_added for tree in self._sums.get(epoch, {}).values())
        return self._num_intervals * len(self._states) if epoch >= 1 else 0

    def push(self, key: GradientKey, gradient: Array) -> Pushed:
        """Count one interval's gradient of this shard's rows; the last of an epoch makes the next version.

        Raises BadFrame    unknown parameter or interval, another shape or dtype than the weight's
        TensorTaskError    the gradient, its sum or the stepped weight is not finite; nothing changed, and a repeat
                           of the same push is refused in the same way
        ScheduleError      a gradient that cannot exist yet, or at all: a bug of ours
        """
        if key.generation < self._generation:
            return Pushed.TOO_LATE
        self._check_identity(key)
        if key.pass_.epoch <= self._epoch:
            return Pushed.REPEATED
        tree = self._sums_of(key.pass_.epoch)[key.parameter]
        fresh = key.interval not in tree
        if fresh:
            self._check_gradient(key, gradient)
            self._stages[key.parameter] = key.stage
            tree.add(key.interval, gradient)
            self._note_held_back()
        while all(tree.complete for tree in self._sums_of(self._epoch + 1).values()):
            self._end_epoch()
        return Pushed.ACCEPTED if fresh else Pushed.REPEATED

    def pull(self, version: int, missing: int = 0) -> Mapping[str, Array] | None:
        """This shard's rows of a version, read-only; None if it is not reached yet. Raises TooLate if it is gone.

        missing  how many updates the asking pass lacks; it makes no difference here, see PredictingWeightStore
        """
        if version > self._version:
            return None
        if version not in self._versions:
            self._raise_gone(version)
        return MappingProxyType(self._versions[version])

    def keep(self, version: int) -> None:
        """Hold a version until it is released. Raises TooLate if it is gone, ScheduleError if it is not reached."""
        if version > self._version:
            raise ScheduleError(
                what=f"keep weights version {version}", why=f"the newest weights version is {self._version}"
            )
        if version not in self._versions:
            self._raise_gone(version)
        self._kept.add(version)

    def release(self, version: int) -> None:
        """Undo `keep`; nothing happens if it was not kept."""
        self._kept.discard(version)
        self._forget()

    def state(self) -> ShardState:
        """For a checkpoint, at a pause. The best version is the one that is kept."""
        best = max(self._kept, default=None)
        return ShardState(
            self._version, self._versions[self._version], self._states, None if best is None else self._versions[best]
        )

    def _resume(self, resumed: Resumed) -> None:
        state, clock = resumed.state, resumed.clock
        self._epoch, self._version = clock.epoch, state.version
        self._versions = {state.version: _copies(state.weights)}
        self._states = {name: dict(state.optimizer.get(name, {})) for name in self._versions[state.version]}
        if clock.best_version is not None and state.best is not None:
            self._versions.setdefault(clock.best_version, _copies(state.best))
            self._kept.add(clock.best_version)

    def _check_identity(self, key: GradientKey) -> None:
        if key.generation > self._generation:
            self._refuse(key, f"this weight store is of generation {self._generation}")
        if key.pass_.kind is not PassKind.TRAIN:
            self._refuse(key, "only train passes have gradients")
        if not self._is_open(key.pass_):
            self._refuse(key, f"the newest weights version is {self._version}, so train {self._epoch + 1} is open")
        if key.parameter not in self._states or not 0 <= key.interval < self._num_intervals:
            raise BadFrame(
                what=f"a gradient of parameter {key.parameter}, interval {key.interval}",
                why=f"here are parameters {', '.join(self._states)} and {self._num_intervals} intervals",
                fix="start every role from the same job spec and the same version of Dorylus",
            )
        stage = self._stages.get(key.parameter, key.stage)
        if stage != key.stage:
            self._refuse(key, f"gradients of {key.parameter} come from stage {stage}: one of two would be dropped")

    def _is_open(self, pass_: Pass) -> bool:
        """Or has been: a repeat comes late."""
        ahead = self._version - self._epoch
        epochs_behind = pass_.epoch - 1 - (pass_.weights_version - ahead)
        return 1 <= pass_.epoch <= self._epoch + 1 + self._staleness and 0 <= epochs_behind <= self._staleness

    def _check_gradient(self, key: GradientKey, gradient: Array) -> None:
        weight = self._versions[self._version][key.parameter]
        if (gradient.shape, gradient.dtype) != (weight.shape, weight.dtype):
            raise BadFrame(
                what=f"gradient of {key.parameter}, interval {key.interval}: {gradient.dtype} {gradient.shape}",
                why=f"this shard holds {weight.dtype} {weight.shape}, and a gradient is cut like its weight",
                fix="start every role from the same job spec and the same version of Dorylus",
            )
        _check_finite(gradient, f"gradient of {key.parameter}, interval {key.interval}, {key.pass_}")

    def _end_epoch(self) -> None:
        epoch, sums = self._epoch + 1, self._sums[self._epoch + 1]
        gradients = {}
        for name, weight in self._versions[self._version].items():
            with np.errstate(over="ignore", invalid="ignore"):
                gradients[name] = sums[name].total().astype(weight.dtype)
            _check_finite(gradients[name], f"gradient of {name}, summed over all intervals, train {epoch}")
        self._make_next_version(self._optimizer, gradients, f"train {epoch}")
        self._epoch = epoch
        del self._sums[epoch]

    def _make_next_version(self, optimizer: Optimizer, gradients: Mapping[str, Array], after: str) -> None:
        # All new arrays first: if one of them is refused, nothing has changed.
        stepped: dict[str, tuple[Array, State]] = {}
        for name, weight in self._versions[self._version].items():
            with np.errstate(over="ignore", invalid="ignore"):
                stepped[name] = optimizer.step(
                    weight, gradients[name], state=self._states[name], step_number=self._version + 1
                )
            _check_finite(stepped[name][0], f"weight {name} after {after}")
        self._version += 1
        self._versions[self._version] = {name: _read_only(weight) for name, (weight, _) in stepped.items()}
        self._states = {name: state for name, (_, state) in stepped.items()}
        self._forget()

    def _sums_of(self, epoch: int) -> dict[str, TreeSum]:
        if epoch not in self._sums:
            self._sums[epoch] = {name: TreeSum(self._num_intervals) for name in self._versions[self._version]}
        return self._sums[epoch]

    def _stashed(self) -> set[int]:
        """Versions that an interval may still ask for."""
        return set(range(self._version - self._staleness - 1, self._version + 1))

    def _forget(self) -> None:
        wanted = self._kept | self._stashed()
        self._versions = {version: weights for version, weights in self._versions.items() if version in wanted}
        self.stash_bytes = max(self.stash_bytes, self._stash_bytes())

    def _raise_gone(self, version: int) -> NoReturn:
        raise TooLate(
            what=f"weights version {version} is gone",
            why=f"held are versions {', '.join(map(str, self.versions))}: the newest and those that are kept",
            fix="keep a version before two newer ones are made",
        )

    def _refuse(self, key: GradientKey, why: str) -> NoReturn:
        where = f"generation {key.generation}, stage {key.stage}, interval {key.interval}"
        raise ScheduleError(what=f"a gradient of {key.parameter} for {key.pass_} ({where})", why=why)


def _copies(weights: Mapping[str, Array]) -> dict[str, Array]:
    return {name: _read_only(np.array(weights[name])) for name in sorted(weights)}


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _check_finite(array: Array, what: str) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        bad = array.size - int(np.count_nonzero(finite))
        raise TensorTaskError(
            what=f"{what}: {bad} of {array.size} values are not finite",
            why="one step with them would make every later weight NaN",
            fix="set a smaller training.lr; if it happens in the first epoch, look for extreme feature values",
        )
