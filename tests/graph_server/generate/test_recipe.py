"""A made-up graph is what its recipe says, from the seed alone, however much of it is drawn at a time."""

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from common.errors import DatasetError, SpecError
from common.job_spec import DatasetSpec
from graph_server.generate import recipe as recipes
from graph_server.generate import write as writing
from graph_server.generate.recipe import Recipe, edges_of, features_of, labels_of, masks_of
from graph_server.generate.write import generate
from graph_server.ingest.dataset import Dataset, prepare

KINDS = ("blocks", "ring", "rmat")
SMALL = {"num_vertices": 3000, "num_edges": 20_000, "num_classes": 4, "num_features": 8, "num_blocks": 12}


def written(path: Path, **changes) -> Dataset:
    generate(Recipe(**{**SMALL, "kind": "blocks", **changes}), path)
    return prepare(DatasetSpec(path=str(path)), path.parent)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_as_what_it_is(tmp_path: Path, kind: str):
    dataset = written(tmp_path / "g.parquet", kind=kind)
    assert (dataset.num_nodes, dataset.num_classes, dataset.features.shape[1]) == (3000, 4, 8)
    assert (dataset.directed, dataset.task, dataset.report["self_loops"]) == (False, "multi_class", 0)
    assert dataset.report["edges_raw"] == 20_000
    assert dataset.report["unlabelled"] == 0
    assert 0.55 < dataset.report["train"] / 3000 < 0.65


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_alone_decides(tmp_path: Path, kind: str):
    first, again, other = (
        written(tmp_path / f"{name}.parquet", kind=kind, seed=seed)
        for name, seed in (("first", 5), ("again", 5), ("other", 6))
    )
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert not np.array_equal(first.features, other.features)


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_and_features_tell_the_label(kind: str):
    recipe = Recipe(**SMALL, kind=kind, signal=1.0)
    sources, targets = edges_of(recipe, 0, 20_000)
    alike = float((labels_of(recipe, sources) == labels_of(recipe, targets)).mean())
    assert alike > {"blocks": 0.8, "ring": 0.75, "rmat": 0.35}[kind]
    labels, features = labels_of(recipe, np.arange(3000)), features_of(recipe, 0, 0, 3000)
    centroids = np.stack([features[labels == label].mean(axis=0) for label in range(4)])
    nearest = ((features[:, None] - centroids) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.6 < (nearest == labels).mean() < 1


def test_degrees_differ_widely_and_edges_stay_in_their_block():
    recipe = Recipe(**SMALL, kind="blocks", inside=0.9)
    sources, targets = edges_of(recipe, 0, 20_000)
    degrees = np.bincount(np.concatenate([sources, targets]), minlength=3000)
    assert degrees.max() > 10 * np.median(degrees)
    assert 0.88 < (sources % 12 == targets % 12).mean() < 0.95


def test_in_a_ring_edges_lead_no_farther_than_the_next_block():
    recipe = Recipe(**SMALL, kind="ring", inside=0.7)
    sources, targets = edges_of(recipe, 0, 20_000)
    apart = (targets - sources) % 12
    assert set(np.unique(apart)) == {0, 1}
    assert (apart == 0).mean() == pytest.approx(0.7, abs=0.02)


def test_masks_take_their_shares():
    masks = masks_of(Recipe(**SMALL, kind="blocks", train=0.1, valid=0.3), np.arange(100_000))
    assert np.bincount(masks)[[1, 2, 4]] / 100_000 == pytest.approx([0.1, 0.3, 0.6], abs=0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "sizes", [(1, 0, 1), (1, 5, 1), (2, 30, 2), (7, 40, 3), (5, 0, 2)], ids=lambda sizes: "-".join(map(str, sizes))
)
def test_the_smallest_ones(tmp_path: Path, kind: str, sizes: tuple[int, int, int]):
    num_vertices, num_edges, num_classes = sizes
    shape = {"num_vertices": num_vertices, "num_edges": num_edges, "num_classes": num_classes, "num_blocks": None}
    dataset = written(tmp_path / "g.parquet", kind=kind, **shape)
    assert (dataset.num_nodes, dataset.report["edges_raw"]) == (num_vertices, num_edges)
    assert dataset.masks[0] == 1


def test_pieces_are_drawn_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recipes, "PIECE", 700)
    monkeypatch.setattr(writing, "ROWS", 300)
    dataset, recipe = written(tmp_path / "g.parquet"), Recipe(**SMALL, kind="blocks")
    sources = pyarrow.parquet.read_table(tmp_path / "g.parquet" / "edges.parquet")["source"].to_numpy()
    assert np.array_equal(sources[1400:2100], edges_of(recipe, 2, 700)[0])
    assert np.array_equal(dataset.features[1400:2100], features_of(recipe, 2, 1400, 2100))
    assert np.array_equal(dataset.masks, masks_of(recipe, np.arange(3000)))


def test_what_is_held_does_not_grow_with_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recipes, "PIECE", 10_000)
    peaks = []
    for factor in (20, 100):
        tracemalloc.start()
        sizes = {"num_vertices": 5000 * factor, "num_edges": 20_000 * factor}
        generate(Recipe(**{**SMALL, **sizes, "kind": "blocks"}), tmp_path / f"{factor}.parquet")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_vertices": 0}, "num_vertices = 0"),
        ({"num_edges": -1}, "num_edges = -1"),
        ({"inside": 1.5}, r"inside = 1\.5"),
        ({"train": -0.5}, r"train = -0\.5"),
        ({"train": 0.8, "valid": 0.3}, r"train = 0\.8 and valid = 0\.3"),
        ({"num_classes": 4000}, "num_classes = 4000 for 3000 vertices"),
    ],
)
def test_a_recipe_that_is_none_leaves_nothing(tmp_path: Path, changes: dict, words: str):
    with pytest.raises(SpecError, match=words):
        written(tmp_path / "g.parquet", **changes)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_replaced(tmp_path: Path):
    (tmp_path / "g.parquet").mkdir()
    with pytest.raises(DatasetError, match="is there already"):
        written(tmp_path / "g.parquet")
