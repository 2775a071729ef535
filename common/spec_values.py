"""The kinds of value a job spec holds: what is allowed, in words, and how text becomes a number.

YAML 1.1 reads `5e-4` as text, a flag is always text: both become numbers here. Nothing else is bent: a bool is
never a number, `010` and `1:30` are never guessed at, NaN and infinity are refused, a whole number has no point.
A kind stands beside the static type: `lr: Annotated[float, Real(above=0)]`.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

# At most 19 digits: every 64-bit number, and never Python's own limit on the length of an int.
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
_REAL = re.compile(r"[-+]?((0|[1-9][0-9]*)\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_NULLS = frozenset({"null", "none", "~"})
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Conflict(ValueError):
    """Keys that do not go together: their full names, why, and how to fix it."""

    def __init__(self, keys: tuple[str, ...], *, why: str, fix: str) -> None:
        self.keys, self.why, self.fix = keys, why, fix
        super().__init__(f"{' with '.join(keys)}: {why}; {fix}")


class Kind:
    """`allowed` says in words what may be given; `check` returns the value as it is kept, or raises ValueError."""

    @property
    def allowed(self) -> str:
        raise NotImplementedError

    def check(self, value: object) -> object:
        raise NotImplementedError

    def refuse(self) -> ValueError:
        return ValueError(f"must be {self.allowed}")

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))


def whole_from(value: object) -> int | None:
    """An int as it stands or as decimal text; None for anything else."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def real_from(value: object) -> float | None:
    """A finite float from a number or from text such as 1e-3; None for anything else."""
    if isinstance(value, str) and _REAL.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _or_words(text: str, words: tuple[str, ...], null: bool) -> str:
    others = [*words, *(["null"] if null else [])]
    return f"{text}, or {' or '.join(others)}" if others else text


def _as_word(value: object, words: tuple[str, ...], null: bool) -> tuple[bool, object]:
    """(True, the word or None) when `value` is one of the words allowed beside the number."""
    if value is None or (isinstance(value, str) and value.strip().lower() in _NULLS):
        return null, None
    return isinstance(value, str) and value.strip() in words, value.strip() if isinstance(value, str) else value


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number in [at_least, at_most]."""

    at_least: int
    at_most: int | None = None
    words: tuple[str, ...] = ()
    null: bool = False

    @property
    def allowed(self) -> str:
        if self.at_least == self.at_most:
            return str(self.at_least)
        limits = f"of at least {self.at_least}" if self.at_most is None else f"from {self.at_least} to {self.at_most}"
        return _or_words(f"a whole number {limits}", self.words, self.null)

    def check(self, value: object) -> object:
        is_word, word = _as_word(value, self.words, self.null)
        number = whole_from(value)
        if is_word:
            return word
        if number is None or number < self.at_least or (self.at_most is not None and number > self.at_most):
            raise self.refuse()
        return number


@dataclass(frozen=True)
class Real(Kind):
    """A finite number; each bound that is given must hold."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    null: bool = False

    @property
    def allowed(self) -> str:
        bounds = [
            ("above", self.above),
            ("of at least", self.at_least),
            ("below", self.below),
            ("at most", self.at_most),
        ]
        limits = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        return _or_words(f"a number {limits}".strip(), (), self.null)

    def check(self, value: object) -> object:
        is_word, word = _as_word(value, (), self.null)
        number = real_from(value)
        if is_word:
            return word
        if number is None or not self._within(number):
            raise self.refuse()
        return number

    def _within(self, number: float) -> bool:
        return not (
            (self.above is not None and number <= self.above)
            or (self.at_least is not None and number < self.at_least)
            or (self.below is not None and number >= self.below)
            or (self.at_most is not None and number > self.at_most)
        )


@dataclass(frozen=True)
class Switch(Kind):
    """true or false, and perhaps a word such as auto."""

    words: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        return " or ".join([", ".join(self.choices[:-1]), self.choices[-1]])

    @property
    def choices(self) -> tuple[str, ...]:
        return (*self.words, "true", "false")

    def check(self, value: object) -> object:
        if isinstance(value, str):
            text = value.strip()
            value = text if text in self.words else _SWITCHES.get(text.lower())
        if value is None or not isinstance(value, bool | str):
            raise self.refuse()
        if isinstance(value, str) and value not in self.words:
            raise self.refuse()
        return value


@dataclass(frozen=True)
class Text(Kind):
    """Text that is not empty; `meaning` says what it names. With a pattern, the whole text must match it."""

    meaning: str
    pattern: str = ""
    null: bool = False

    @property
    def allowed(self) -> str:
        return _or_words(self.meaning, (), self.null)

    def check(self, value: object) -> object:
        if value is None and self.null:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self.refuse()
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise self.refuse()
        return value


@dataclass(frozen=True)
class Widths(Kind):
    """One width, or a width per hidden layer: 16, [32, 16], and as a flag "32,16"."""

    allowed = "a whole number of at least 1, or a list of them"

    def check(self, value: object) -> object:
        parts = value.split(",") if isinstance(value, str) else value
        if isinstance(parts, list | tuple):
            widths = tuple(whole_from(part) for part in parts)
            alone = isinstance(value, str) and len(widths) == 1
        else:
            widths, alone = (whole_from(parts),), True
        if any(width is None or width < 1 for width in widths):
            raise self.refuse()
        return widths[0] if alone else widths


@dataclass(frozen=True)
class ClassWeights(Kind):
    """null, balanced, or one weight per class; as a flag "1,2.5,1"."""

    allowed = "balanced, a list of numbers of at least 0 that are not all 0, or null"

    def check(self, value: object) -> object:
        is_word, word = _as_word(value, ("balanced",), null=True)
        if is_word:
            return word
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            raise self.refuse()
        weights = tuple(real_from(part) for part in parts)
        if any(weight is None or weight < 0 for weight in weights) or not any(weights):
            raise self.refuse()
        return weights
