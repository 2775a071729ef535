"""From what was typed to a resolved job spec: defaults, the model's, the reader's, the file's, the flags'."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from common import plugins, spec_file
from common.errors import SpecError
from common.job_spec import DatasetSpec, job_name_from
from common.resolve_spec import Layer, ResolvedSpec, refuse_unbuilt, resolve
from graph_server.ingest.dataset import reader_defaults
from local_cloud.given_folder import cut_of, given_folder

MODELS = "common.models"


def load_job(target: str | None, flags: Layer, base_folder: Path) -> ResolvedSpec:
    """`target`: a bundled name (no slash, no dot), a job spec, or a dataset; None: the flags name the dataset.

    Raises SpecError, and DatasetError where the dataset is not there.
    """
    layers = [*_target_layers(target, base_folder), flags]
    resolved = resolve([_named(target), *default_layers(layers, base_folder), *layers])
    refuse_unbuilt(resolved)
    return resolved


def default_layers(layers: list[Layer], base_folder: Path, *, only: Collection[str] | None = None) -> list[Layer]:
    """What holds where `layers` are silent, the weakest first: the model's, the reader's, a graph folder's cut. `only`:
    files of a graph folder that have to be there; all.

    Raises SpecError, and DatasetError where the dataset is not there.
    """
    model = plugins.load(MODELS, _last_said(layers, "model", "name", default="gcn"))
    name = model.__name__.rpartition(".")[2]
    defaults = [Layer(f"defaults of {name}", _nested(model.DEFAULTS), is_default=True)]
    dataset = resolve([*defaults, *layers]).spec.dataset
    found = reader_defaults(dataset, base_folder).get(name, {})
    if found:
        defaults.append(Layer(f"defaults of {dataset.path} for {name}", _nested(found), is_default=True))
    if (folder := given_folder(dataset, base_folder, only=only)) is not None:
        defaults.append(Layer(f"cut of {dataset.path}", {"cut": cut_of(folder)}, is_default=True))
    return defaults


def dataset_of(target: str, flags: Layer, base_folder: Path) -> DatasetSpec:
    """The dataset group alone; the dataset is not looked at. Raises SpecError."""
    resolved = resolve([*_target_layers(target, base_folder), flags])
    refuse_unbuilt(resolved)
    return resolved.spec.dataset


def _target_layers(target: str | None, base_folder: Path) -> list[Layer]:
    if target is None:
        return []
    path = base_folder / Path(target).expanduser()
    if spec_file.is_job_spec(path):
        values, lines = spec_file.read(path)
        return [Layer(path.name, values, lines)]
    return [Layer("command line", {"dataset": {"path": target}})]


def _named(target: str | None) -> Layer:
    """A job is called as its spec or dataset, unless something says otherwise."""
    stem = Path(target).name.split(".")[0] if target else ""
    return Layer("the file's name", {"name": job_name_from(stem)} if stem else {}, is_default=True)


def _last_said(layers: list[Layer], group: str, key: str, *, default: str) -> str:
    """A value needed before the whole is resolved; what is not text is left for `resolve` to refuse."""
    for layer in reversed(layers):
        values = layer.values.get(group)
        if isinstance(values, Mapping) and isinstance(values.get(key), str):
            return str(values[key])
    return default


def _nested(flat: Mapping[str, object]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for dotted, value in flat.items():
        group, key = dotted.split(".")
        nested.setdefault(group, {})[key] = value
    return nested


def need_a_target(target: str | None, flags: Layer) -> None:
    if target is None and "dataset" not in flags.values:
        raise SpecError("nothing to train on", fix="dorylus train cora, dorylus train job.yaml, or dorylus train PATH")
