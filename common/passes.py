"""A pass is one walk of all intervals through a program: `train e`, `evaluate e`, `predict e`.

Passes are ordered: by epoch, then train before evaluate before predict. A row never gives way to one of an older pass.
"""

import enum

import msgspec


class PassKind(enum.IntEnum):
    TRAIN = 0
    EVALUATE = 1
    PREDICT = 2
    """An evaluation whose logits are kept; it may run with an older, better weights version."""


class Pass(msgspec.Struct, frozen=True, order=True):
    """`epoch` counts from 1. `train e` reads weights version e - 1 and makes version e; `evaluate e` reads e."""

    epoch: int
    kind: PassKind
    weights_version: int

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} {self.epoch}"

    @property
    def missing_updates(self) -> int:
        """How many updates of earlier epochs its weights lack: more than 0 only in async, with staleness above 0."""
        return max(0, self.epoch - 1 - self.weights_version) if self.kind is PassKind.TRAIN else 0


def train(epoch: int) -> Pass:
    return Pass(epoch, PassKind.TRAIN, epoch - 1)


def evaluate(epoch: int) -> Pass:
    return Pass(epoch, PassKind.EVALUATE, epoch)


def predict(epoch: int, weights_version: int) -> Pass:
    return Pass(epoch, PassKind.PREDICT, weights_version)
