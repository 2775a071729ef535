"""Would AWS let a role do this? Its synthesised policies, asked as IAM asks them: by action, resource and conditions.

Policies of identities only. Source:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Request:
    """resource: `*` where an action knows none. context: condition key -> value."""

    action: str
    resource: str = "*"
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Statement:
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, Sequence[str]]]

    @property
    def grants(self) -> set[str]:
        """`action resource`, each that it has."""
        return {f"{action} {resource}" for action in self.actions for resource in self.resources}

    def answers(self, request: Request) -> set[str]:
        """The grants that say something of it; none if a condition does not hold."""
        if not all(_holds(name, keys, request.context) for name, keys in self.conditions.items()):
            return set()
        return {
            f"{action} {resource}"
            for action in self.actions
            for resource in self.resources
            if _like(action, request.action) and _like(resource, request.resource)
        }


@dataclass(frozen=True)
class Replay:
    refused: list[Request]
    used: set[str]
    """Grants without which something would have been refused, or which others would have had to give."""


@dataclass(frozen=True)
class Policy:
    """All of one role."""

    statements: tuple[Statement, ...]

    @property
    def grants(self) -> set[str]:
        return {grant for one in self.statements if one.effect == "Allow" for grant in one.grants}

    def without(self, statement: Statement) -> "Policy":
        return Policy(tuple(one for one in self.statements if one is not statement))

    def replay(self, requests: Iterable[Request]) -> Replay:
        refused: list[Request] = []
        used: set[str] = set()
        for request in requests:
            found = self.allowing(request)
            used |= found
            if not found:
                refused.append(request)
        return Replay(refused, used)

    def allowing(self, request: Request) -> set[str]:
        """None: refused. What is denied anywhere is refused."""
        if any(one.answers(request) for one in self.statements if one.effect == "Deny"):
            return set()
        return {grant for one in self.statements if one.effect == "Allow" for grant in one.answers(request)}


def _holds(operator: str, keys: Mapping[str, Sequence[str]], context: Mapping[str, str]) -> bool:
    """A key that the request does not bear fulfils nothing."""
    compare = {"StringEquals": str.__eq__, "StringLike": _like, "ArnEquals": _like, "ArnLike": _like}[operator]
    return all(key in context and any(compare(value, context[key]) for value in keys[key]) for key in keys)


def _like(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    wild: dict[str, Any] = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(letter, re.escape(letter)) for letter in pattern), re.DOTALL)
