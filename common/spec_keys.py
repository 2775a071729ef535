"""Every key of the job spec, read off the schema: what checks, flags and the reference page are made from.

A key is named in full, groups and all: `training.lr`, `dataset.split.train`, and at the top `version`, `name`.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from common.job_spec import JobSpec
from common.spec_values import Kind, Switch


@dataclass(frozen=True)
class Key:
    """One setting."""

    dotted: str
    allowed: str
    """What may be given, in words."""
    choices: tuple[str, ...]
    """The only values, as text; empty when there are more than a few."""
    meaning: str
    default: object
    required: bool

    @property
    def group(self) -> str:
        return self.dotted.rpartition(".")[0]

    @property
    def leaf(self) -> str:
        return self.dotted.rpartition(".")[2]

    @property
    def is_switch(self) -> bool:
        return self.choices == Switch().choices


@functools.cache
def keys() -> dict[str, Key]:
    """Full name -> key, in the order of the schema. The same object every time: do not change it."""
    return {key.dotted: key for key in _keys_of(JobSpec, "")}


@functools.cache
def groups() -> dict[str, str]:
    """Full name of each group -> what it is about; "" is the whole spec."""
    return dict(_groups_of(JobSpec, ""))


def _groups_of(group: type[BaseModel], prefix: str) -> Iterator[tuple[str, str]]:
    yield prefix.rstrip("."), (group.__doc__ or "").strip()
    for name, field in group.model_fields.items():
        if (inner := _group_in(field)) is not None:
            yield from _groups_of(inner, f"{prefix}{name}.")


def _keys_of(group: type[BaseModel], prefix: str) -> Iterator[Key]:
    for name, field in group.model_fields.items():
        inner = _group_in(field)
        if inner is not None:
            yield from _keys_of(inner, f"{prefix}{name}.")
        else:
            yield _key(prefix + name, field)


def _group_in(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _key(dotted: str, field: FieldInfo) -> Key:
    kind = next((mark for mark in field.metadata if isinstance(mark, Kind)), None)
    choices = kind.choices if isinstance(kind, Switch) else ()
    if get_origin(field.annotation) is Literal and kind is None:
        choices = tuple(str(choice) for choice in get_args(field.annotation))
    return Key(
        dotted,
        allowed=kind.allowed if kind is not None else " or ".join([", ".join(choices[:-1]), choices[-1]]),
        choices=choices,
        meaning=" ".join((field.description or "").split()),
        default=None if field.is_required() else field.get_default(call_default_factory=True),
        required=field.is_required(),
    )
