"""A graph folder that is itself the dataset of a job: mapped as it is, if the job asks for nothing that is not in it.

Its cut stands as a default in the job spec, so that the spec says what is trained on. A job that asks for another cut,
or for any policy, reads the folder like every other format and has it cut into the cache.
"""

from collections.abc import Collection
from pathlib import Path

from common.job_spec import DatasetSpec, JobSpec
from graph_server.graph.folder_reader import GraphFolder
from graph_server.ingest.detect import find_format, locate

FORMAT = "graph_folder"


def given_folder(dataset: DatasetSpec, base_folder: Path, *, only: Collection[str] | None = None) -> GraphFolder | None:
    """The graph folder that `dataset.path` names, if it names one. Looks at no other file than the manifest's; `only`:
    those that have to be there.

    Raises DatasetError if files of it are missing or of another size.
    """
    path = locate(dataset, base_folder)
    if not path.is_dir() or find_format(dataset, path)[0] != FORMAT:
        return None
    return GraphFolder.open(path, only=only)


def cut_of(folder: GraphFolder) -> dict[str, object]:
    """As the keys of a job spec's group `cut`."""
    cut = folder.manifest.cut
    return {"method": cut.method, "cut_seed": cut.seed, "num_intervals": cut.num_intervals}


def as_it_is(spec: JobSpec, folder: GraphFolder) -> bool:
    """Whether the job wants the folder's own cut, and no policy but the defaults."""
    usual = DatasetSpec(path=spec.dataset.path, format=spec.dataset.format)
    return spec.cut.model_dump() == cut_of(folder) and spec.dataset.model_dump() == usual.model_dump()
