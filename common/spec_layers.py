"""Layers of settings, and what a layer says: known keys under their full names, everything else an error.

An alias counts as its right name. A key that is unknown gets an answer: the group it belongs under, the nearest
spelling over all keys, or the reason why it is not offered.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from common.errors import SpecError
from common.spec_keys import groups, keys
from common.spec_words import ALIASES, NOT_OFFERED, OTHER_TOOLS


@dataclass(frozen=True)
class Layer:
    """Settings from one source: nested as in a file, later layers win over earlier ones."""

    source: str
    """Who says so, in words: a file's name, "flags", "defaults of gat"."""
    values: Mapping[str, object]
    lines: Mapping[str, int] = field(default_factory=dict)
    """Full name of a key, as it was written -> line of the file."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Full name of a key -> the flag that set it."""
    is_default: bool = False
    """Defaults of the model, of a reader or of a bundled name: nobody asked for these."""

    def where(self, dotted: str) -> str:
        """Where a key was set, for messages: `job.yaml:7`, `--lr`, or the source alone."""
        if dotted in self.flags:
            return self.flags[dotted]
        return f"{self.source}:{self.lines[dotted]}" if dotted in self.lines else self.source


@dataclass(frozen=True)
class Setting:
    """One key as one layer sets it."""

    key: str
    value: object
    where: str
    written: str
    """The key as it was written: an alias, perhaps."""
    rank: int
    """Number of the layer: the highest wins."""
    is_default: bool


def settings_of(layer: Layer, rank: int) -> tuple[list[Setting], list[SpecError]]:
    """All settings of a layer in the order written, and everything that is wrong with its keys."""
    settings: dict[str, Setting] = {}
    wrong: list[SpecError] = []
    for found in _walk(layer, layer.values, prefix=""):
        if isinstance(found, SpecError):
            wrong.append(found)
            continue
        written, value = found
        key = ALIASES.get(written, "dataset.path" if written == "dataset" else written)
        setting = Setting(key, value, layer.where(written), written, rank, layer.is_default)
        if key in settings:
            wrong.append(_said_twice(settings[key], setting))
        settings[key] = setting
    return list(settings.values()), wrong


def show(value: object) -> str:
    """A value as a job spec would have it, at most 60 characters."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, tuple | list):
        text = f"[{', '.join(show(item) for item in value)}]"
    elif isinstance(value, str):
        text = value if re.fullmatch(r"[\w./:+*,-]+", value) else repr(value)
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _walk(layer: Layer, values: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object] | SpecError]:
    for name, value in values.items():
        dotted = f"{prefix}{name}"
        if "." in name:
            yield _unknown(layer, prefix.rstrip("."), name, value)
        elif dotted in keys() or dotted in ALIASES or (dotted == "dataset" and isinstance(value, str)):
            yield dotted, value
        elif dotted not in groups() or not name:
            yield _unknown(layer, prefix.rstrip("."), str(name), value)
        elif isinstance(value, Mapping):
            yield from _walk(layer, value, prefix=f"{dotted}.")
        elif value is not None:
            # An empty group is legal: its keys may all be comments.
            yield _not_a_group(layer, dotted, value)


def _said_twice(first: Setting, second: Setting) -> SpecError:
    return SpecError(
        f"{first.written} ({first.where}) and {second.written} ({second.where}) are the same key",
        why=f"both mean {first.key}, here {show(first.value)} and {show(second.value)}",
        fix=f"keep one of them, best {first.key}",
    )


def _not_a_group(layer: Layer, dotted: str, value: object) -> SpecError:
    lead = next((leaf for leaf in ("name", "path") if f"{dotted}.{leaf}" in keys()), None)
    example = f"write {dotted}: {{{lead}: {show(value)}}}" if lead else f"put the keys of {dotted} beneath it, indented"
    return SpecError(
        f"{dotted} = {show(value)} ({layer.where(dotted)})", why=f"{dotted} is a group of keys", fix=example
    )


def _unknown(layer: Layer, group: str, name: str, value: object) -> SpecError:
    dotted = f"{group}.{name}" if group else name
    what = f"{dotted} = {show(value)} ({layer.where(dotted)}) is not a key of the job spec"
    if name in NOT_OFFERED:
        return SpecError(what, why=NOT_OFFERED[name], fix="remove it")
    if "." in name:
        return SpecError(what, why="groups are nested, not dotted", fix="put the key beneath its group, indented")
    if homes := _homes(name):
        right = OTHER_TOOLS.get(name, "").rpartition(".")[2] or name
        said = f"{name} is called {right} here, and" if right != name else name
        return SpecError(
            what, fix=f"{said} belongs {' or '.join(f'under {home}' if home else 'at the top' for home in homes)}"
        )
    near = _nearest(group, name, only_groups=isinstance(value, Mapping))
    if near is not None:
        here = near if near.rpartition(".")[0] != group else near.rpartition(".")[2]
        return SpecError(what, fix=f"did you mean {here}?")
    known = [key.leaf for key in keys().values() if key.group == group]
    known += [other.rpartition(".")[2] for other in groups() if other and other.rpartition(".")[0] == group]
    return SpecError(what, fix=f"the keys {f'under {group}' if group else 'at the top'} are {', '.join(known)}")


def _homes(name: str) -> list[str]:
    """Groups that have a key, an alias or a group of just this name."""
    full = [*keys(), *ALIASES, *(other for other in groups() if other)]
    homes = [dotted.rpartition(".")[0] for dotted in full if dotted.rpartition(".")[2] == name]
    if name in OTHER_TOOLS:
        homes.append(OTHER_TOOLS[name].rpartition(".")[0])
    return homes


def _nearest(group: str, name: str, *, only_groups: bool) -> str | None:
    """Full name of the key or group nearest in spelling; at equal spelling one of the same group. What has keys beneath
    it is meant as a group."""
    all_groups = [other for other in groups() if other]
    candidates = all_groups if only_groups else [*keys(), *all_groups, *ALIASES]
    leaves = {dotted.rpartition(".")[2] for dotted in candidates}
    # Sorted: a set's order is not the same in every process.
    best = difflib.get_close_matches(name, sorted(leaves), n=1, cutoff=0.65)
    homes = [dotted for dotted in candidates if best and dotted.rpartition(".")[2] == best[0]]
    ours = [dotted for dotted in homes if dotted.rpartition(".")[0] == group]
    return next((ALIASES.get(dotted, dotted) for dotted in [*ours, *homes]), None)
