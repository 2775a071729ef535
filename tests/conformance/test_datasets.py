"""Every on-disk format is proven. A new file is picked up by its name and brings its own example."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from common import plugins
from common.job_spec import DatasetSpec
from graph_server.ingest.detect import FORMATS, find_format
from tests.conformance import dataset_proofs as proofs

NAMES = plugins.names(FORMATS)
each_format = pytest.mark.parametrize("name", NAMES)


def modules(package: str = FORMATS) -> dict:
    return {name: plugins.load(package, name) for name in plugins.names(package)}


def test_there_are_formats():
    assert {"planetoid", "gnn_benchmark", "edge_list"} <= set(NAMES)


@each_format
def test_face(name):
    proofs.prove_face(modules()[name])


@each_format
def test_detection(name, tmp_path):
    others = [module for other, module in modules().items() if other != name]
    proofs.prove_detection(modules()[name], others, tmp_path)


@each_format
def test_its_example_is_found_among_all_formats(name, tmp_path):
    path = proofs.example(modules()[name], tmp_path / "example")
    assert find_format(DatasetSpec(path=str(path)), path)[0] == name


@each_format
def test_content(name, tmp_path):
    proofs.prove_content(modules()[name], tmp_path / "example")
    proofs.prove_dataset(modules()[name], tmp_path / "dataset")


@each_format
def test_no_pickle_is_run(name, tmp_path):
    proofs.prove_no_pickle_runs(modules()[name], tmp_path)


@each_format
def test_damage_is_named(name, tmp_path):
    proofs.prove_damage_is_named(modules()[name], tmp_path)


# ---- a new file


NEW_FORMAT = '''\
"""A matrix in one .npy file: 1 where an edge is; the last column is the label."""

import numpy as np

from graph_server.ingest.archives import load_npy
from graph_server.ingest.raw_graph import RawGraph

LOOKS_FOR = "square: one .npy [N, N + 1]"
DEFAULTS = {"gcn": {"model.hidden_size": 4}}


def detect(path):
    return path.suffix == ".square" and path.read_bytes()[:6] == b"\\x93NUMPY"


def read(path, options):
    matrix = load_npy(path)
    if matrix.ndim != 2 or matrix.shape[1] != len(matrix) + 1 or matrix.dtype.kind not in "if":
        from graph_server.ingest.raw_graph import damaged
        raise damaged(path, f"its shape is {matrix.shape}")
    sources, targets = np.nonzero(matrix[:, :-1])
    masks = {"train": np.ones(len(matrix), bool), "valid": np.zeros(len(matrix), bool)}
    return RawGraph(
        format="square", node_ids=np.arange(len(matrix)), sources=sources, targets=targets,
        features=matrix[:, :-1], labels=matrix[:, -1].astype(np.int64),
        masks=masks | {"test": masks["valid"]}, edges_are_a_set=True, undirected=None, usual_normalization="none",
    )


def example(folder):
    file = folder / "ring.square"
    with file.open("wb") as stream:
        np.save(stream, np.array([[0, 1, 0], [1, 0, 1]]))
    return file
'''


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder of formats that holds one new file."""
    package = tmp_path / "shelf_with_a_new_format"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "square.py").write_text(NEW_FORMAT)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for name in [name for name in sys.modules if name.startswith(package.name)]:
        del sys.modules[name]


def test_a_new_file_is_picked_up_and_proven(shelf, tmp_path):
    assert plugins.names(shelf.name) == ("square",)
    module = plugins.load(shelf.name, "square")
    proofs.prove_face(module)
    proofs.prove_detection(module, list(modules().values()), tmp_path / "detection")
    proofs.prove_content(module, tmp_path / "content")
    proofs.prove_dataset(module, tmp_path / "dataset")
    proofs.prove_no_pickle_runs(module, tmp_path / "pickles")
    proofs.prove_damage_is_named(module, tmp_path / "damage")


FAULTS = {
    "detects everything": ('path.suffix == ".square" and path.read_bytes()[:6] == b"\\x93NUMPY"', "True", "detection"),
    "lets an error out": ("load_npy(path)", "np.load(path)", "damage"),
    "unpickles": ("load_npy(path)", "np.load(path, allow_pickle=True)", "pickles"),
    "bears another name": ('format="square"', 'format="npy"', "content"),
    "narrow ends": ("sources=sources", "sources=sources.astype(np.int32)", "content"),
    "a mask is missing": ('masks | {"test": masks["valid"]}', "masks", "content"),
    "an unknown key": ("model.hidden_size", "model.hidden", "face"),
}


@pytest.mark.parametrize(("old", "new", "proof"), FAULTS.values(), ids=FAULTS.keys())
def test_a_new_file_with_a_fault_is_not_proven(shelf, tmp_path, old, new, proof):
    assert old in NEW_FORMAT
    (shelf / "square.py").write_text(NEW_FORMAT.replace(old, new))
    module = plugins.load(shelf.name, "square")
    with pytest.raises((AssertionError, ValueError)):
        PROOFS[proof](module, tmp_path / "proof")


PROOFS = {
    "face": lambda module, folder: proofs.prove_face(module),
    "detection": lambda module, folder: proofs.prove_detection(module, list(modules().values()), folder),
    "content": proofs.prove_content,
    "pickles": proofs.prove_no_pickle_runs,
    "damage": proofs.prove_damage_is_named,
}


def test_a_new_file_without_an_example_says_what_it_lacks(shelf, tmp_path):
    (shelf / "square.py").write_text(NEW_FORMAT.partition("def example")[0])
    with pytest.raises(AssertionError, match=r"square\.py needs example\(folder\) -> path"):
        proofs.prove_content(plugins.load(shelf.name, "square"), tmp_path / "content")


def test_the_trap_works(tmp_path):
    """Unpickled without care it leaves its trace; so the proof above can fail."""
    for number, poison in enumerate(proofs.POISONS.values()):
        trace, file = tmp_path / f"trace{number}", tmp_path / f"file{number}"
        poison(file, proofs.Trap(trace))
        if number == 0:
            pickle.loads(file.read_bytes())  # noqa: S301
        else:
            loaded = np.load(file, allow_pickle=True)
            assert number == 1 or loaded["x"] is not None
        assert trace.is_dir()
