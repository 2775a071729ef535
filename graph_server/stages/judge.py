"""What a metric that ranks rows needs of an evaluated interval: the rows of a mask have to come together."""

from common.passes import Pass, PassKind
from common.saga.arrays import Array
from common.saga.tasks import TRUTH
from graph_server.stages.held import Held


def judged_rows(held: Held, pass_: Pass, interval: int) -> tuple[Array, ...]:
    """(logits, truth, masks) of the rows that are in a mask; () of other passes and metrics."""
    programs = held.programs
    if pass_.kind is not PassKind.EVALUATE or "logits" not in programs.evaluate.steps[-1].writes:
        return ()
    names = ("logits", TRUTH[programs.model.task], "masks")
    logits, truth, masks = (held.store.rows(pass_, name, interval) for name in names)
    judged = masks[:, 0] != 0
    return logits[judged], truth[judged], masks[judged]
