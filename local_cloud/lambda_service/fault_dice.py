"""Whether bad luck strikes. Each kind has its own seeded row of numbers, so one kind does not move another's."""

import random

from local_cloud.lambda_service.settings import Faults


class FaultDice:
    """Set anew by assigning another one; the row of decisions begins again."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._throttle = random.Random(f"throttle {faults.seed}")
        self._crash = random.Random(f"crash {faults.seed}")

    def throttles(self) -> bool:
        return self._throttle.random() < self.faults.throttle_probability

    def crash_after(self) -> float | None:
        """Seconds into the invocation at which its worker is killed; None for the lucky."""
        strikes, when = self._crash.random() < self.faults.crash_probability, self._crash.random()
        return when * self.faults.crash_within_seconds if strikes else None
