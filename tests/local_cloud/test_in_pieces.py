"""What is converted within a memory limit is what is converted without one; what cannot be says so."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from cli.spec_flags import flag_layer
from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import parquet
from graph_server.graph.folder_reader import GraphFolder
from graph_server.ingest import edge_text, named_vertices
from graph_server.large import sorted_edges
from local_cloud.convert import Converted, convert
from tests.graph_server.datasets.folders import write_folder


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_text, "_PIECE_BYTES", 500)
    monkeypatch.setattr(edge_text, "_PIECE_ROWS", 70)
    monkeypatch.setattr(named_vertices, "_FRESH", 50)


def converted(source: Path, out: Path, memory_bytes: int | None = None, **dataset: str) -> Converted:
    flags = flag_layer({f"dataset.{name}": value for name, value in dataset.items()})
    return convert(str(source), out, flags, source.parent, memory_bytes=memory_bytes)


def edges(seed: int, low: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, 200, (900, 2))


def lines(array: np.ndarray, prefix: str = "") -> str:
    return "".join(f"{prefix}{a}\t{prefix}{b}\n" for a, b in array.tolist())


def write(folder: Path, kind: str) -> Path:
    """A list of edges alone."""
    folder.mkdir()
    if kind == "snap":
        file = folder / "graph.txt.gz"
        file.write_bytes(gzip.compress(f"# Undirected graph: x\n{lines(edges(0))}".encode()))
        return file
    if kind == "array":
        np.save(folder / "graph.npy", edges(1).T)
        return folder / "graph.npy"
    (folder / "edges").mkdir()
    texts = {"part-2.csv": lines(edges(2)), "part-10.csv": lines(edges(3), "v" if kind == "texts" else "")}
    for name, text in texts.items():
        (folder / "edges" / name).write_text("source\ttarget\n" + text)
    return folder


def same(folders: list[Path], **options: str) -> None:
    specs = [DatasetSpec(path=str(folder), negative_ids=True, **options) for folder in folders]
    first, second = (parquet.read(folder, spec) for folder, spec in zip(folders, specs, strict=True))
    for name in ("node_ids", "sources", "targets", "features", "labels"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
    assert first.node_ids.dtype.kind == second.node_ids.dtype.kind
    assert first.undirected == second.undirected
    assert (first.weights is None) == (second.weights is None)
    if first.weights is not None:
        assert first.weights.values.tobytes() == second.weights.values.tobytes()
        assert str(first.weights.negative) == str(second.weights.negative)


@pytest.mark.parametrize("kind", ["snap", "array", "parts", "texts"])
def test_a_list_of_edges_alone_as_parquet(tmp_path: Path, kind: str):
    source, outs = write(tmp_path / "in", kind), [tmp_path / "whole.parquet", tmp_path / "pieces.parquet"]
    done = [converted(source, out, limit) for out, limit in zip(outs, (None, 10**9), strict=True)]
    assert (done[0].num_nodes, done[0].num_edges) == (done[1].num_nodes, done[1].num_edges)
    assert done[0].notes == done[1].notes
    same(outs)


def test_a_folder_with_features_as_parquet(tmp_path: Path):
    rows = np.arange(190)
    folder = write_folder(
        tmp_path / "in",
        edges_tsv=lines(edges(4, low=-9)),
        features_csv="id,f\n" + "".join(f"{row - 9},{row}\n" for row in rows),
        labels_csv="id,y\n" + "".join(f"{row - 9},{row % 3}\n" for row in rows[5:]),
    )
    outs = [tmp_path / "whole.parquet", tmp_path / "pieces.parquet"]
    options = {"drop_unknown_edges": "true", "negative_ids": "true"}
    done = [converted(folder, out, limit, **options) for out, limit in zip(outs, (None, 10**9), strict=True)]
    assert done[1].num_edges == done[0].num_edges < 900
    assert f"{900 - done[1].num_edges} edges name a vertex that does not exist: dropped" in done[1].notes
    same(outs)


def test_a_graph_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sorted_edges, "ENTRY_BYTES", 500_000)
    monkeypatch.setattr(sorted_edges, "BESIDE_BYTES", 0)
    rows = np.arange(200)
    texts = {
        "features_csv": "".join(f"{row},1\n" for row in rows),
        "labels_csv": "".join(f"{row % 3}\n" for row in rows),
    }
    folder = write_folder(tmp_path / "in", edges_tsv=lines(edges(5)), **texts)
    for name, limit in (("whole", None), ("pieces", 10**9)):
        done = converted(folder, tmp_path / f"{name}.dorylus", limit, directed="false")
        assert done.num_nodes == 200
    manifests = [GraphFolder.open(tmp_path / f"{name}.dorylus", verify=True).manifest for name in ("whole", "pieces")]
    assert manifests[0].files == manifests[1].files
    assert manifests[0].num_edges == manifests[1].num_edges == done.num_edges
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "pieces.dorylus", "whole.dorylus"]


def weighted_folder(folder: Path) -> Path:
    """Two parts, repeats, a hundred edges to nowhere; the second part has negative weights."""
    write_folder(
        folder,
        features_csv="".join(f"{row},1\n" for row in range(190)),
        labels_csv="".join(f"{row % 3}\n" for row in range(190)),
    )
    (folder / "edges.csv").unlink()
    (folder / "edges").mkdir()
    for number in (0, 1):
        random = np.random.default_rng(number)
        weights = random.integers(-3 if number else 1, 9, 900) / 7
        rows = [f"{a},{w},{b}\n" for (a, b), w in zip(edges(number) % 195 // 2 * 2, weights, strict=True)]
        (folder / "edges" / f"part-{number}.csv").write_text("source,hours,target\n" + "".join(rows))
    return folder


@pytest.mark.parametrize("directed", ["true", "false"])
@pytest.mark.parametrize("dedup", ["true", "false"])
def test_weights_are_those_of_a_graph_that_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dedup: str, directed: str
):
    monkeypatch.setattr(sorted_edges, "ENTRY_BYTES", 500_000)
    monkeypatch.setattr(sorted_edges, "BESIDE_BYTES", 0)
    monkeypatch.setattr("graph_server.large.parquet_graph.BATCH", 100)
    folder = weighted_folder(tmp_path / "in")
    reading = {"edge_weight": "hours", "drop_unknown_edges": "true"}
    policies = {"dedup": dedup, "directed": directed}
    tables, outs, done = [], [], []
    for name, limit in (("whole", None), ("pieces", 10**9)):
        tables.append(tmp_path / f"{name}.parquet")
        done.append(converted(folder, tables[-1], limit, **reading))
        outs.append(tmp_path / f"{name}.dorylus")
        converted(folder, outs[-1], limit, **reading, **policies)
    again = tmp_path / "again.dorylus"
    converted(tables[0], again, 10**9, edge_weight="weight", **policies)
    assert set(done[0].notes) - set(done[1].notes) <= {note for note in done[0].notes if "dropped" in note}
    same(tables, edge_weight="weight")
    manifests = [GraphFolder.open(out, verify=True).manifest for out in (*outs, again)]
    assert manifests[0].weighted
    assert any(name.endswith("weights.npy") for name in manifests[0].files)
    assert manifests[0].files == manifests[1].files == manifests[2].files
    assert manifests[0].symmetric == manifests[1].symmetric
    reports = [dict(manifest.report) for manifest in manifests]
    assert str(reports[0]["negative_weights"]).startswith("part-1.csv: line ")
    assert str(reports[2]["negative_weights"]).startswith("edges.parquet: row ")
    for name in ("edge_weights", "negative_weights", "duplicate_edges_of_another_weight"):
        assert reports[0].get(name) == reports[1].get(name), name


@pytest.mark.parametrize("ending", ["parquet", "dorylus"])
def test_weights_that_are_not_there_or_none_are_refused_as_ever(tmp_path: Path, ending: str):
    folder, words = weighted_folder(tmp_path / "in"), []
    for number, weight in enumerate(("minutes", "hours")):
        if weight == "hours":
            with (folder / "edges" / "part-1.csv").open("a") as file:
                file.write("0,nan,1\n")
        for limit in (None, 10**9):
            with pytest.raises(DatasetError) as error:
                converted(folder, tmp_path / f"{number}.{ending}", limit, edge_weight=weight, drop_unknown_edges="true")
            words.append(error.value.what)
    assert words[0] == words[1]
    assert words[2].startswith(f"{folder}/edges/part-1.csv: line 902: 1 of ")
    assert words[3].startswith(f"{folder}/edges/part-1.csv: line 902: 1 of ")
    assert not (tmp_path / f"1.{ending}").exists()


@pytest.mark.parametrize(("name", "content", "format_name"), [
    ("m.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n", "matrix_market"),
    ("x.npz", None, "arrays"),
])  # fmt: skip
@pytest.mark.parametrize("ending", ["parquet", "dorylus"])
def test_a_format_that_is_read_whole_says_which_are_not(
    tmp_path: Path, name: str, content: str | None, format_name: str, ending: str
):
    if content is None:
        np.savez(tmp_path / name, edge_index=np.array([[0, 1, 2], [1, 2, 0]]))
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=rf"{name} \({format_name}\) cannot be read within --memory-limit") as error:
        converted(tmp_path / name, tmp_path / f"out.{ending}", 10**9)
    assert "piece by piece go edge lists" in error.value.why
    assert "leave --memory-limit away" in error.value.fix
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_list_of_edges_alone_is_no_graph_folder(tmp_path: Path):
    with pytest.raises(DatasetError, match="is an edge list alone") as error:
        converted(write(tmp_path / "in", "snap"), tmp_path / "out.dorylus", 10**9)
    assert "features.csv and labels.csv beside it" in error.value.fix


def test_vertices_that_have_no_room_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("graph_server.large.to_parquet.BESIDE_BYTES", 0)
    with pytest.raises(DatasetError, match="vertices and more, whose ids take") as error:
        converted(write(tmp_path / "in", "parts"), tmp_path / "out.parquet", 2000)
    assert error.value.fix == "raise --memory-limit"
    assert not (tmp_path / "out.parquet").exists()


def test_ids_that_are_negative_or_missing_are_refused_as_ever(tmp_path: Path):
    (tmp_path / "a.txt").write_text("0 1\n1 -2\n")
    with pytest.raises(DatasetError, match=r"a\.txt:2: the id -2 is negative"):
        converted(tmp_path / "a.txt", tmp_path / "out.parquet", 10**9)
    (tmp_path / "b.txt").write_text("# nothing\n")
    with pytest.raises(DatasetError, match=r"b\.txt"):
        converted(tmp_path / "b.txt", tmp_path / "out.parquet", 10**9, format="edge_list")


@pytest.mark.parametrize("name", ["nodes.parquet", "edges.parquet"])
def test_tables_that_break_off_are_named(tmp_path: Path, name: str):
    folder = tmp_path / "made.parquet"
    converted(write_folder(tmp_path / "in"), folder)
    whole = (folder / name).read_bytes()
    for number, content in enumerate((whole[: len(whole) // 2], whole[:60] + b"\xff" * 40 + whole[100:])):
        (folder / name).write_bytes(content)
        with pytest.raises(DatasetError, match="cannot be read"):
            converted(folder, tmp_path / f"{number}.dorylus", 10**9, directed="true")
