"""The bag of a simulated cluster: whatever may happen next, and the die that draws from it.

Without a die everything happens once, in the order in which it came up.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

KINDS = ("command", "done", "ghosts", "attempt", "lost", "gradients", "report", "news", "line")
REPEATED = ("done", "ghosts", "lost", "gradients", "report", "news")


@dataclass(frozen=True)
class Happening:
    kind: str
    happen: Callable[[], None]


@dataclass
class Bag:
    """Each die is reluctant to draw some kinds, which then come late, and has a rate of misfortune of its own."""

    die: random.Random | None
    coming: list[Happening] = field(default_factory=list)
    past: list[Happening] = field(default_factory=list)

    def __post_init__(self) -> None:
        choice = self.die.choice if self.die else lambda among: among[0]
        self.reluctance = {kind: choice((0.0, 0.0, 0.5, 0.95)) for kind in KINDS}
        self.misfortune = choice((0.0, 0.05, 0.1, 0.3))

    def put(self, kind: str, happen: Callable[..., None], *arguments: Any) -> None:
        self.coming.append(Happening(kind, partial(happen, *arguments)))

    def strikes(self) -> bool:
        return self.die is not None and self.die.random() < self.misfortune

    def draw(self) -> Happening:
        if self.die is None:
            return self.coming.pop(0)
        if self.past and self.strikes():
            # Of all that ever happened, recent things more often.
            return self.past[-1 - int(self.die.random() ** 3 * len(self.past))]
        drawn = self._take(self.die)
        if drawn.kind in REPEATED and self.misfortune:
            self.past.append(drawn)
        return drawn

    def _take(self, die: random.Random) -> Happening:
        for _ in range(5):
            place = int(die.random() * len(self.coming))
            if die.random() >= self.reluctance[self.coming[place].kind]:
                break
        self.coming[place], self.coming[-1] = self.coming[-1], self.coming[place]
        return self.coming.pop()
