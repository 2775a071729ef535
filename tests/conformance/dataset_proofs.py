"""What must hold for every on-disk format, as functions of its module.

Each proof works on the format's own example: `example(folder) -> path` in its file or, where that may not write such
files, in tests/conformance/examples/.
"""

import importlib
import pickle
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import scipy.sparse

from common import plugins
from common.errors import DatasetError
from common.job_spec import DatasetSpec
from common.spec_keys import keys
from graph_server.ingest.dataset import apply_policies
from graph_server.ingest.raw_graph import MASK_NAMES, RawGraph

EXAMPLES = "tests.conformance.examples"


def example(module: ModuleType, folder: Path) -> Path:
    """The format's example, in a new folder."""
    name = module.__name__.rpartition(".")[2]
    folder.mkdir(parents=True)
    write: Callable[[Path], Path] | None = getattr(module, "example", None)
    if write is None:
        beside = Path(__file__).parent / "examples" / f"{name}.py"
        assert beside.is_file(), f"{name}.py needs example(folder) -> path, which writes a tiny dataset"
        write = importlib.import_module(f"{EXAMPLES}.{name}").example
    return write(folder)


def example_files(module: ModuleType, folder: Path) -> list[str]:
    """What the example consists of, relative to its folder."""
    example(module, folder)
    names = sorted(contents(folder))
    assert names, "an example has at least one file"
    return names


def read(module: ModuleType, path: Path) -> RawGraph:
    return module.read(path, DatasetSpec(path=str(path), allow_pickle=True))


def prove_face(module: ModuleType) -> None:
    """LOOKS_FOR is a sentence for an error; DEFAULTS name models and keys that are there."""
    assert isinstance(module.LOOKS_FOR, str)
    assert module.LOOKS_FOR
    known = keys()
    for model, defaults in module.DEFAULTS.items():
        assert model in plugins.names("common.models")
        assert set(defaults) <= set(known)


def prove_detection(module: ModuleType, others: list[ModuleType], folder: Path) -> None:
    """Yes to its own example, no to those of the others, to nothing and to noise; it never raises."""
    assert module.detect(example(module, folder / "own")) is True
    for number, other in enumerate(others):
        path = example(other, folder / f"other{number}")
        assert module.detect(path) is False, f"it takes an example of {other.__name__} for its own"
    for path in noise(folder / "noise"):
        assert module.detect(path) is False, path.name


def noise(folder: Path) -> Iterator[Path]:
    """An empty folder, an empty file, random bytes, the beginnings of archives, a path that is not there."""
    (folder / "empty folder").mkdir(parents=True)
    yield folder / "empty folder"
    yield folder / "nothing"
    random = np.random.default_rng(0).bytes(4096)
    contents = {"empty": b"", "random": random, "zip": b"PK\3\4" + random, "gzip": b"\x1f\x8b\x08" + random}
    contents |= {
        "npy": b"\x93NUM" + random,
        "word": b"word\n",
        "pickle": pickle.dumps({"x": [1, 2]}),
        "zeros": b"\0" * 64,
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        yield folder / name
    with zipfile.ZipFile(folder / "other.npz", "w") as archive:
        archive.writestr("weights.npy", random)
    yield folder / "other.npz"


def prove_content(module: ModuleType, folder: Path) -> None:
    """A RawGraph whose parts fit together, the same each time, from files that stay as they are."""
    path = example(module, folder)
    before = contents(folder)
    raw, again = read(module, path), read(module, path)
    assert contents(folder) == before
    assert raw.format == module.__name__.rpartition(".")[2]
    prove_consistent(raw)
    for name in ("node_ids", "sources", "targets"):
        assert np.array_equal(getattr(raw, name), getattr(again, name))


def prove_consistent(raw: RawGraph) -> None:
    num_nodes = len(raw.node_ids)
    assert num_nodes > 0
    assert raw.node_ids.dtype == np.int64 or raw.node_ids.dtype.kind == "U"
    assert len(np.unique(raw.node_ids)) == num_nodes
    for ends in (raw.sources, raw.targets):
        assert ends.dtype == np.int64
        assert ends.shape == raw.sources.shape == (raw.num_edges,)
        assert raw.num_edges > 0, "an example without edges proves nothing of them"
        assert ends.min() >= 0
        assert ends.max() < num_nodes
    if raw.features is not None:
        assert isinstance(raw.features, np.ndarray) or scipy.sparse.issparse(raw.features)
        assert raw.features.shape[0] == num_nodes
        assert raw.features.dtype.kind in "biuf"
    if raw.labels is not None:
        assert raw.labels.shape[0] == num_nodes
    if raw.masks is not None:
        assert set(raw.masks) == set(MASK_NAMES)
        assert all(mask.dtype == np.bool_ and mask.shape == (num_nodes,) for mask in raw.masks.values())
    assert isinstance(raw.edges_are_a_set, bool)
    assert raw.undirected in (None, True, False)
    assert raw.usual_normalization in ("none", "row", "standard")
    assert all(isinstance(note, str) for note in raw.notes)


def prove_dataset(module: ModuleType, folder: Path) -> None:
    """With the policies applied it is a dataset to train on; a format of edges alone says what it lacks."""
    path = example(module, folder)
    raw, options = read(module, path), DatasetSpec(path=str(path), directed=True)
    if raw.labels is None:
        assert raw.why_no_labels
        assert raw.features is not None or raw.why_no_features
        raw = replace(raw, features=np.eye(raw.num_nodes), labels=np.arange(raw.num_nodes) % 2)
    dataset = apply_policies(raw, options, name="example")
    assert dataset.features.dtype == np.float32
    assert dataset.num_classes >= 2
    assert (dataset.masks & 1).any()


def prove_no_pickle_runs(module: ModuleType, folder: Path) -> None:
    """Each file of the example in turn becomes a pickle that would leave a trace, raw and as an object array.

    It is refused or passed over; whatever happens to it, it is not run.
    """
    for number, name in enumerate(example_files(module, folder / "names")):
        for kind, poison in POISONS.items():
            place, trace = folder / f"{number} {kind}", folder / f"trace {number} {kind}"
            path = example(module, place)
            poison(place / name, Trap(trace))
            attempt(module, path)
            assert not trace.exists(), f"a pickle in {name} ({kind}) was run"


def prove_damage_is_named(module: ModuleType, folder: Path) -> None:
    """Half of a file, or noise in its place: read, or refused with an error of ours, never anything else."""
    for number, name in enumerate(example_files(module, folder / "names")):
        for kind in ("half", "noise"):
            place = folder / f"{number} {kind}"
            path = example(module, place)
            whole = (place / name).read_bytes()
            (place / name).write_bytes(whole[: len(whole) // 2] if kind == "half" else bytes(range(256)))
            attempt(module, path)


def attempt(module: ModuleType, path: Path) -> None:
    """Detect and read; only a DatasetError may come out."""
    if module.detect(path):
        try:
            prove_consistent(read(module, path))
        except DatasetError:
            return


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


class Trap:
    """Unpickled, it makes a folder at `trace`."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.mkdir, (self.trace,)


def _raw(file: Path, trap: Trap) -> None:
    file.write_bytes(pickle.dumps(trap, protocol=2))


def _object_array(file: Path, trap: Trap) -> None:
    with file.open("wb") as stream:
        np.save(stream, np.array([trap, trap], dtype=object), allow_pickle=True)


def _members(file: Path, trap: Trap) -> None:
    """Every array of an archive; a file that is none becomes one."""
    names = ["x.npy"]
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    objects = {name.removesuffix(".npy"): np.array([trap, trap], dtype=object) for name in names}
    with file.open("wb") as stream:
        np.savez(stream, **objects)


POISONS = {"raw": _raw, "object array": _object_array, "archive of objects": _members}
