"""What a function must know of a job to run its tensor tasks; plain data, sent once per lease."""

import msgspec

from common import plugins
from common.saga.layer import ModelOptions
from common.saga.loss import LossOptions
from common.saga.program import Programs, derive

MODELS = "common.models"


class TaskJob(msgspec.Struct, frozen=True):
    model: str
    options: ModelOptions
    hoist: bool
    commute: bool
    loss: LossOptions
    seed: int

    def programs(self) -> Programs:
        """Derived from the same declaration by the same rules as on the graph server."""
        model, loss = plugins.load(MODELS, self.model).build(self.options), self.loss
        return derive(model, hoist=self.hoist, commute=self.commute, task=loss.task, metric=loss.metric)
