"""Layers of settings -> one job spec that says where each value came from.

Order: schema defaults < model file < reader or bundled name < file < flags; the caller hands the layers over in this
order, without the schema's. All that is wrong is said at once, with key, value, what is allowed and where it stands.
"""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from common.errors import SpecError
from common.job_spec import JobSpec, layers_of, not_to_be_given
from common.spec_keys import Key, keys
from common.spec_layers import Layer, Setting, settings_of, show
from common.spec_values import Conflict
from common.unbuilt import UNBUILT, Unbuilt

__all__ = ["Layer", "ResolvedSpec", "dump", "refuse_unbuilt", "resolve"]

SCHEMA = "default"


@dataclass(frozen=True)
class ResolvedSpec:
    """The spec of a job, complete."""

    spec: JobSpec
    sources: Mapping[str, str]
    """Full name of every key -> where its value came from."""
    notes: tuple[str, ...]
    """What the user should read once: aliases, keys without effect."""
    given: frozenset[str]
    """Keys that a file or a flag sets; all others are defaults of some kind."""

    def value(self, dotted: str) -> object:
        return _flat(self.spec.model_dump())[dotted]


def resolve(layers: Sequence[Layer]) -> ResolvedSpec:
    """The later layer wins, key by key. Raises one SpecError that lists everything that is wrong."""
    settings, wrong = _read(layers)
    winners = {setting.key: setting for setting in sorted(settings, key=lambda setting: setting.rank)}
    fixed, notes = _a_list_fixes_the_layers(winners)
    try:
        spec = JobSpec.model_validate(_nested(winners))
    except ValidationError as error:
        wrong += [_in_words(one, winners) for one in error.errors(include_url=False)]
    if wrong:
        raise _joined(wrong)
    sources = {dotted: winners[dotted].where if dotted in winners else SCHEMA for dotted in keys()}
    given = frozenset(key for key, setting in winners.items() if not setting.is_default)
    resolved = ResolvedSpec(spec, {**sources, **fixed}, (), given)
    return ResolvedSpec(spec, resolved.sources, (*_aliases(settings), *notes, *_idle(resolved)), given)


def refuse_unbuilt(resolved: ResolvedSpec, *, built: Collection[str] = ()) -> None:
    """Raise SpecError for every key that somebody set and this version cannot honour; defaults pass.

    built   keys that can be honoured where this job will run
    """
    rows = [row for row in UNBUILT if row.key in resolved.given and row.key not in built]
    refused = [row for row in rows if row.refuses(resolved.value(row.key))]
    if refused:
        raise _joined([_not_yet(row, resolved) for row in refused])


def dump(resolved: ResolvedSpec) -> str:
    """YAML of the whole spec, each key with where it came from; reading it again gives the same spec.

    A default that may not be spelled out (of a part that is not built, or without meaning here) stands as a comment.
    """
    values = _flat(resolved.spec.model_dump())
    hushed = not_to_be_given(resolved.spec) | {row.key for row in UNBUILT if row.refuses(values[row.key])}
    lines: list[str] = []
    said: list[str] = []
    for dotted in values:
        *parents, leaf = dotted.split(".")
        for depth in range(len(parents)):
            if said[: depth + 1] != parents[: depth + 1]:
                lines.append(f"{'  ' * depth}{parents[depth]}:")
        said = parents
        mark = "# " if dotted in hushed and resolved.sources[dotted] == SCHEMA else ""
        setting = f"{'  ' * len(parents)}{mark}{leaf}: {_yaml(values[dotted])}"
        lines.append(f"{setting:<44}  # {resolved.sources[dotted]}")
    return "\n".join(lines) + "\n"


def _read(layers: Sequence[Layer]) -> tuple[list[Setting], list[SpecError]]:
    settings: list[Setting] = []
    wrong: list[SpecError] = []
    for rank, layer in enumerate(layers):
        more, errors = settings_of(layer, rank)
        settings += more
        wrong += errors
    return settings, wrong


def _a_list_fixes_the_layers(winners: dict[str, Setting]) -> tuple[dict[str, str], list[str]]:
    """A list of widths sets num_layers aside when that stands in an earlier layer: (source of num_layers, notes)."""
    widths, layers = winners.get("model.hidden_size"), winners.get("model.num_layers")
    num_layers = layers_of(widths.value) if widths is not None else None
    if widths is None or num_layers is None or (layers is not None and layers.rank >= widths.rank):
        return {}, []
    winners.pop("model.num_layers", None)
    notes = []
    if layers is not None and not layers.is_default and show(layers.value) != str(num_layers):
        notes = [
            f"model.num_layers = {show(layers.value)} ({layers.where}) gives way to "
            f"hidden_size = {show(widths.value)} ({widths.where}): {num_layers} layers"
        ]
    return {"model.num_layers": f"fixed by hidden_size ({widths.where})"}, notes


def _aliases(settings: Sequence[Setting]) -> Iterator[str]:
    renamed = {one.written: one for one in settings if one.written not in (one.key, "dataset")}
    for one in renamed.values():
        yield f"{one.written} ({one.where}) is called {one.key.rpartition('.')[2]} here; it is accepted"


def _idle(resolved: ResolvedSpec) -> Iterator[str]:
    for dotted in ("training.early_stop_rounds", "training.early_stop_min_delta"):
        value, where = resolved.value(dotted), resolved.sources[dotted]
        if dotted in resolved.given and value != keys()[dotted].default and not resolved.spec.training.use_early_stop:
            yield f"{dotted} = {show(value)} ({where}) has no effect: use_early_stop is false"


def _nested(winners: Mapping[str, Setting]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for dotted, setting in winners.items():
        *parents, leaf = dotted.split(".")
        branch = tree
        for name in parents:
            branch = branch.setdefault(name, {})
        branch[leaf] = setting.value
    return tree


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _in_words(one: ErrorDetails, winners: Mapping[str, Setting]) -> SpecError:
    cause = one.get("ctx", {}).get("error")
    if isinstance(cause, Conflict):
        parts = [_said(dotted, winners) for dotted in cause.keys]
        return SpecError(" with ".join(parts), why=cause.why, fix=cause.fix)
    dotted = ".".join(str(part) for part in one["loc"])
    if one["type"] == "missing":
        return SpecError(
            f"{dotted} is missing",
            why="there is nothing to train on",
            fix="add dataset: with a bundled name, a folder or a file",
        )
    key = keys()[dotted]
    value = winners[dotted].value
    return SpecError(_said(dotted, winners), why=f"it must be {key.allowed}", fix=_hint(key, value))


def _said(dotted: str, winners: Mapping[str, Setting]) -> str:
    if dotted in winners:
        return f"{dotted} = {show(winners[dotted].value)} ({winners[dotted].where})"
    return f"{dotted} = {show(keys()[dotted].default)} ({SCHEMA})"


def _hint(key: Key, value: object) -> str:
    if value is None:
        return "give a value, or remove the key" + ("" if key.required else f" for its default, {show(key.default)}")
    if isinstance(value, bool) and not key.is_switch:
        return "true and false are neither text nor numbers; YAML reads yes, no, on and off so too: put text in quotes"
    if isinstance(value, str) and (near := difflib.get_close_matches(value.lower(), key.choices, n=1)):
        return f"did you mean {near[0]}?"
    if isinstance(value, int | float) and not isinstance(key.default, int | float | None) and not key.choices:
        return "put text in quotes"
    return f"change it{'' if key.required else f', or remove it for its default, {show(key.default)}'}"


def _not_yet(row: Unbuilt, resolved: ResolvedSpec) -> SpecError:
    others = [show(value) for value in row.works if value is not None]
    remove = "give a local path" if row.refused_prefix else "remove it"
    return SpecError(
        f"{row.key} = {show(resolved.value(row.key))} ({resolved.sources[row.key]}): not in this version",
        why=f"{row.part}: not built yet",
        fix=f"{remove}, or set it to {' or '.join(others)}" if others else remove,
    )


def _joined(wrong: Sequence[SpecError]) -> SpecError:
    if len(wrong) == 1:
        return wrong[0]
    listed = "\n".join("  " + str(one).replace("\n", "\n  ") for one in wrong)
    return SpecError(f"{len(wrong)} problems in the job spec\n{listed}")


def _yaml(value: object) -> str:
    value = list(value) if isinstance(value, tuple) else value
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
