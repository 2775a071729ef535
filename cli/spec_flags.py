"""The flags that set keys of the job spec, one per key, made from the schema.

A flag is the key's leaf name with hyphens (`training.num_epochs` = `--num-epochs`). Where leaf names would collide, the
table below decides: `--name` is the job's, a group's `name` or `path` is reached by the group's own flag.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from common.spec_keys import Key, keys
from common.spec_layers import Layer
from common.unbuilt import UNBUILT

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "dataset.path": "--dataset",
        "model.name": "--model",
        "backend.name": "--backend",
        "output.path": "--output",
        "dataset.split.train": "--split-train",
        "dataset.split.valid": "--split-valid",
        "dataset.split.test": "--split-test",
    }
)
# --version asks the tool for its own.
_WITHOUT_A_FLAG = frozenset({"version"})


@dataclass(frozen=True)
class Flag:
    """One flag. Its value goes to the schema as the text that was typed; `boolean` also has its `--no-` form."""

    name: str
    dotted_key: str
    type: Literal["boolean", "choice", "text"]
    help: str
    choices: tuple[str, ...] = ()
    """The only values; empty unless `type` is choice."""


def flags() -> list[Flag]:
    """All flags, in the order of the schema."""
    return [_flag(key) for key in keys().values() if key.dotted not in _WITHOUT_A_FLAG]


def flag_name(dotted_key: str) -> str | None:
    """`--num-epochs` for `training.num_epochs`; None for a key that only a file can set."""
    if dotted_key in _WITHOUT_A_FLAG:
        return None
    return _NAMES.get(dotted_key, "--" + dotted_key.rpartition(".")[2].replace("_", "-"))


def flag_layer(given: Mapping[str, object]) -> Layer:
    """The layer of the flags that were typed: full name of the key -> text, or a bool for a boolean flag."""
    values: dict[str, object] = {}
    for dotted, value in given.items():
        branch = values
        *parents, leaf = dotted.split(".")
        for name in parents:
            inner = branch.setdefault(name, {})
            assert isinstance(inner, dict)
            branch = inner
        branch[leaf] = value
    return Layer("flags", values, flags={dotted: flag_name(dotted) or dotted for dotted in given})


def _flag(key: Key) -> Flag:
    name = flag_name(key.dotted) or ""
    rows = (row for row in UNBUILT if row.key == key.dotted and not row.refused_prefix)
    missing = any({key.default}.issuperset(row.works) for row in rows)
    text = f"{key.meaning} (not in this version)" if missing else key.meaning
    if key.is_switch:
        return Flag(name, key.dotted, "boolean", text)
    return Flag(name, key.dotted, "choice" if key.choices else "text", text, key.choices)
