"""Weights for a pass that begins before all updates are there: carried on along the newest step.

In async mode with staleness s an interval may begin epoch e with weights that lack up to s updates. An optimizer with
momentum takes its gradient for a fresh one and overshoots. So the weights of version v, for a pass that lacks h
updates, are

    w_v + h (w_v - w_(v-1))

which is where the next h steps lead if they are like the last one; with momentum they nearly are. Versions stay as
they are: predicted weights are computed with, never stepped from, evaluated or saved.
Source: Chen et al. 2018, SpecTrain (arXiv:1809.02839), which carries on along the momentum itself.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from common.errors import ScheduleError
from parameter_server.weight_store import Array, WeightStore


class PredictingWeightStore(WeightStore):
    """Keeps one version more than its base, and each prediction as long as the versions that it was made of. Right
    after a start or a resume there is no step to carry on along: then a version is given as it is."""

    @cached_property
    def _predicted(self) -> dict[tuple[int, int], dict[str, Array]]:
        """By version and missing updates."""
        return {}

    @property
    def held_bytes(self) -> int:
        return super().held_bytes + self._predicted_bytes()

    def pull(self, version: int, missing: int = 0) -> Mapping[str, Array] | None:
        """Raises ScheduleError if more updates are missing than the staleness allows."""
        if missing > self._staleness:
            raise ScheduleError(
                what=f"weights version {version} for a pass that lacks {missing} updates",
                why=f"with staleness {self._staleness} it lacks {self._staleness} at most",
            )
        rows, before = super().pull(version), self._versions.get(version - 1)
        if rows is None or before is None or not missing:
            return rows
        if (version, missing) not in self._predicted:
            self._predicted[version, missing] = {
                name: _carried_on(row, before[name], missing) for name, row in rows.items()
            }
        return self._predicted[version, missing]

    def _stashed(self) -> set[int]:
        return {*super()._stashed(), self._version - self._staleness - 2}

    def _forget(self) -> None:
        super()._forget()
        self._predicted = {
            of: rows for of, rows in self._predicted.items() if {of[0], of[0] - 1} <= self._versions.keys()
        }

    def _stash_bytes(self) -> int:
        return super()._stash_bytes() + self._predicted_bytes()

    def _predicted_bytes(self) -> int:
        return sum(array.nbytes for rows in self._predicted.values() for array in rows.values())


def _carried_on(newer: Array, older: Array, steps: int) -> Array:
    carried = newer + np.asarray(steps, newer.dtype) * (newer - older)
    carried.flags.writeable = False
    return carried
