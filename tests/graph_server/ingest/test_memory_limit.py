"""The limits of control groups, old and new, of a group and of those above it."""

from pathlib import Path

import pytest

from graph_server.ingest import memory
from graph_server.ingest.memory_limit import left_in_groups

V1, V2 = ("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current")


def group(folder: Path, names: tuple[str, str], limit: str, used: int, stat: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(stat)


def left(tmp_path: Path, proc: str) -> int | None:
    (tmp_path / "proc").write_text(proc)
    return left_in_groups(tmp_path / "proc", tmp_path / "mount")


def test_the_nearest_limit_counts(tmp_path: Path):
    group(tmp_path / "mount" / "job" / "step", V2, "max", 300)
    group(tmp_path / "mount" / "job", V2, "1000", 400, "anon 300\ninactive_file 50\n")
    group(tmp_path / "mount", V2, "9000", 500)
    assert left(tmp_path, "0::/job/step\n") == 1000 - 400 + 50


def test_version_one(tmp_path: Path):
    memory_folder = tmp_path / "mount" / "memory"
    group(memory_folder / "job", V1, "2000", 700, "inactive_file 1\ntotal_inactive_file 200\n")
    group(memory_folder, V1, str(2**63 - 4096), 900)
    assert left(tmp_path, "4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n") == 2000 - 700 + 200


def test_in_a_container_the_path_is_that_of_the_host(tmp_path: Path):
    group(tmp_path / "mount", V2, "5000", 6000)
    assert left(tmp_path, "0::/docker/0123/step\n") == 0


def test_no_limit(tmp_path: Path):
    group(tmp_path / "mount" / "job", V2, "max", 1)
    assert left(tmp_path, "0::/job\n") is None
    assert left(tmp_path, "") is None
    assert left_in_groups(tmp_path / "absent", tmp_path / "absent") is None


def test_the_smaller_of_machine_and_limit_is_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "left_in_groups", lambda: 12345)
    assert memory.available_memory_bytes() == 12345
    monkeypatch.setattr(memory, "left_in_groups", lambda: 2**60)
    assert 0 < memory.available_memory_bytes() < 2**60
