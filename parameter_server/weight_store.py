"""One shard of the weights: gradients in, versions out.

Version 0 is what it is given. When every interval's gradient of every parameter of `train e` is there, exactly one
optimizer step on their tree-ordered float64 sum, rounded once, makes version e. A gradient counts once, however often
and in whatever order it comes, so a task may be repeated; versions are read-only and never change.
Kept are the newest two versions and those that somebody asked to keep.

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
    """

    def __init__(
        self, weights: Mapping[str, Array], optimizer: Optimizer, num_intervals: int, *, generation: int = 1
    ) -> None:
        if not weights:
            raise ModelError(what="the model has no parameters", why="there is nothing to train", fix="add a layer")
        self._optimizer, self._num_intervals, self._generation = optimizer, num_intervals, generation
        self._version = 0
        self._versions = {0: {name: _read_only(np.array(weights[name])) for name in sorted(weights)}}
        self._states = {name: optimizer.state(rows.shape, rows.dtype) for name, rows in self._versions[0].items()}
        self._kept: set[int] = set()
        self._stages: dict[str, str] = {}
        self._sums = self._empty_sums()

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
        return sum(array.nbytes for array in arrays) + sum(tree.held_bytes for tree in self._sums.values())

    def received(self, epoch: int) -> int:
        """How many gradients of `train epoch` have counted."""
        if epoch == self._version + 1:
            return sum(tree.num_added for tree in self._sums.values())
        return self._num_intervals * len(self._sums) if 1 <= epoch <= self._version else 0

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
        if key.pass_.epoch <= self._version:
            return Pushed.REPEATED
        tree = self._sums[key.parameter]
        fresh = key.interval not in tree
        if fresh:
            self._check_gradient(key, gradient)
            self._stages[key.parameter] = key.stage
            tree.add(key.interval, gradient)
        if all(tree.complete for tree in self._sums.values()):
            self._make_next_version()
        return Pushed.ACCEPTED if fresh else Pushed.REPEATED

    def pull(self, version: int) -> Mapping[str, Array] | None:
        """This shard's rows of a version, read-only; None if it is not reached yet. Raises TooLate if it is gone."""
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

    def _check_identity(self, key: GradientKey) -> None:
        if key.generation > self._generation:
            self._refuse(key, f"this weight store is of generation {self._generation}")
        if key.pass_.kind is not PassKind.TRAIN:
            self._refuse(key, "only train passes have gradients")
        if not 1 <= key.pass_.epoch <= self._version + 1 or key.pass_.weights_version != key.pass_.epoch - 1:
            self._refuse(key, f"the newest weights version is {self._version}, so train {self._version + 1} is open")
        if key.parameter not in self._sums or not 0 <= key.interval < self._num_intervals:
            raise BadFrame(
                what=f"a gradient of parameter {key.parameter}, interval {key.interval}",
                why=f"here are parameters {', '.join(self._sums)} and {self._num_intervals} intervals",
                fix="start every role from the same job spec and the same version of Dorylus",
            )
        stage = self._stages.get(key.parameter, key.stage)
        if stage != key.stage:
            self._refuse(key, f"gradients of {key.parameter} come from stage {stage}: one of two would be dropped")

    def _check_gradient(self, key: GradientKey, gradient: Array) -> None:
        weight = self._versions[self._version][key.parameter]
        if (gradient.shape, gradient.dtype) != (weight.shape, weight.dtype):
            raise BadFrame(
                what=f"gradient of {key.parameter}, interval {key.interval}: {gradient.dtype} {gradient.shape}",
                why=f"this shard holds {weight.dtype} {weight.shape}, and a gradient is cut like its weight",
                fix="start every role from the same job spec and the same version of Dorylus",
            )
        _check_finite(gradient, f"gradient of {key.parameter}, interval {key.interval}, {key.pass_}")

    def _make_next_version(self) -> None:
        # All new arrays first: if one of them is refused, nothing has changed.
        stepped = {name: self._step(name) for name in self._sums}
        self._version += 1
        self._versions[self._version] = {name: _read_only(weight) for name, (weight, _) in stepped.items()}
        self._states = {name: state for name, (_, state) in stepped.items()}
        self._sums = self._empty_sums()
        self._forget()

    def _step(self, name: str) -> tuple[Array, State]:
        weight, epoch = self._versions[self._version][name], self._version + 1
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = self._sums[name].total().astype(weight.dtype)
            _check_finite(gradient, f"gradient of {name}, summed over all intervals, train {epoch}")
            stepped, state = self._optimizer.step(weight, gradient, state=self._states[name], step_number=epoch)
        _check_finite(stepped, f"weight {name} after train {epoch}")
        return stepped, state

    def _empty_sums(self) -> dict[str, TreeSum]:
        return {name: TreeSum(self._num_intervals) for name in self._versions[self._version]}

    def _forget(self) -> None:
        wanted = self._kept | {self._version, self._version - 1}
        self._versions = {version: weights for version, weights in self._versions.items() if version in wanted}

    def _raise_gone(self, version: int) -> NoReturn:
        raise TooLate(
            what=f"weights version {version} is gone",
            why=f"held are versions {', '.join(map(str, self.versions))}: the newest two and those that are kept",
            fix="keep a version before two newer ones are made",
        )

    def _refuse(self, key: GradientKey, why: str) -> NoReturn:
        where = f"generation {key.generation}, stage {key.stage}, interval {key.interval}"
        raise ScheduleError(what=f"a gradient of {key.parameter} for {key.pass_} ({where})", why=why)


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
