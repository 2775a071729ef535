"""The modes that benchmarks compare, and how a job gets one without reading its graph again."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cli.spec_flags import flag_layer
from graph_server.graph.cache import default_cache_dir
from local_cloud.load_job import load_job
from local_cloud.observer import Silent
from local_cloud.prepare import PreparedJob, prepare_job

ASYNC = {bound: f"async s={bound}" for bound in (0, 1, 2)}
MODES: Mapping[str, Mapping[str, str]] = {
    "sync": {"training.mode": "sync"},
    "pipe": {"training.mode": "pipe"},
    **{name: {"training.mode": "async", "training.staleness": str(bound)} for bound, name in ASYNC.items()},
}
"""Settings by the full name of the key."""

Settings = Mapping[str, str]


def prepared(target: str, settings: Settings) -> PreparedJob:
    """With the defaults that `dorylus train` has; graphs are kept in the user's cache."""
    spec = load_job(target, flag_layer(settings), Path.cwd()).spec
    return prepare_job(spec, base_folder=Path.cwd(), cache_dir=default_cache_dir(), observer=Silent())


def with_settings(job: PreparedJob, target: str, settings: Settings) -> PreparedJob:
    """The same graph, cut and model; `settings` are all of them, and what differs concerns how it is trained."""
    return replace(job, spec=load_job(target, flag_layer(settings), Path.cwd()).spec)


def generated_graphs() -> Path:
    return default_cache_dir() / "benchmarks"
