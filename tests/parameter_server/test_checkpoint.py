"""Checkpoints: to the last bit or not at all, whatever happens to a disk; and the same over a bucket."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from common.errors import CheckpointError
from parameter_server.checkpoint import CheckpointFolder, read_checkpoint
from parameter_server.checkpoint_files import MANIFEST, shard_state
from parameter_server.saved_state import ShardState
from tests.buckets import BUCKET, Bucket, bucket
from tests.parameter_server.checkpoints import JOB, SHAPES, bits, clock_at, save, state_at


@pytest.fixture
def folder(tmp_path: Path) -> CheckpointFolder:
    return CheckpointFolder(str(tmp_path / "checkpoints"))


def found(folder: CheckpointFolder) -> list[str]:
    path = Path(folder.url)
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def newest(folder: CheckpointFolder) -> tuple[int | None, list[str]]:
    """Its epoch, and what was noted on the way."""
    notes: list[str] = []
    checkpoint = folder.newest(notes.append)
    return None if checkpoint is None else checkpoint.epoch, notes


# ---- there and back


@pytest.mark.parametrize("best", [None, 8])
@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_what_is_written_is_read_to_the_bit(folder: CheckpointFolder, count: int, best: int | None):
    state = save(folder, 10, best=best, count=count)
    checkpoint = folder.newest()
    assert checkpoint is not None
    assert bits(checkpoint.state) == bits(state)
    assert checkpoint.state.version == 10
    assert (checkpoint.state.best is None) == (best is None)
    assert (checkpoint.epoch, checkpoint.clock, checkpoint.job) == (10, clock_at(10, best), JOB)
    assert bits(read_checkpoint(checkpoint.url).state) == bits(state)


def test_the_layout(folder: CheckpointFolder):
    save(folder, 10)
    assert found(folder) == [
        "epoch-000010/manifest.json",
        "epoch-000010/shard-0-of-2.safetensors",
        "epoch-000010/shard-1-of-2.safetensors",
    ]


def test_another_number_of_parameter_servers_goes_on_from_it(folder: CheckpointFolder):
    state = save(folder, 10, best=8, count=2)
    for epoch, count in ((20, 1), (30, 3)):
        checkpoint = folder.newest()
        assert checkpoint is not None
        parts = [shard_state(checkpoint.state, count, number) for number in range(count)]
        files = [folder.write_shard(epoch, number, count, part) for number, part in enumerate(parts)]
        folder.commit(clock_at(epoch, 8), files, JOB)
    last = folder.newest()
    assert last is not None
    assert bits(last.state) == bits(state)


def test_an_optimizer_that_remembers_nothing(folder: CheckpointFolder):
    state = ShardState(3, {name: np.ones(shape) for name, shape in SHAPES.items()}, {name: {} for name in SHAPES})
    folder.commit(clock_at(3), [folder.write_shard(3, 0, 1, state)], JOB)
    checkpoint = folder.newest()
    assert checkpoint is not None
    assert checkpoint.state.optimizer == state.optimizer


def test_where_nothing_was_written_there_is_none(folder: CheckpointFolder):
    assert newest(folder) == (None, [])


# ---- what is kept


def test_the_newest_are_kept_and_the_one_that_holds_the_best(tmp_path: Path):
    folder = CheckpointFolder(str(tmp_path), keep=2)
    kept = []
    for epoch, best in ((10, 4), (20, 14), (30, 14), (40, 14), (50, 44), (60, 44), (70, 44)):
        save(folder, epoch, best=best)
        kept.append([int(name[-6:]) for name in sorted(os.listdir(tmp_path))])
    assert kept == [[10], [10, 20], [20, 30], [20, 30, 40], [40, 50], [50, 60], [50, 60, 70]]


def test_what_was_never_finished_goes_with_the_next_one(folder: CheckpointFolder):
    folder.write_shard(10, 0, 2, state_at(10))
    save(folder, 20)
    assert found(folder) == [f"epoch-000020/{name}" for name in (MANIFEST, *_shards(2))]


def _shards(count: int) -> list[str]:
    return [f"shard-{number}-of-{count}.safetensors" for number in range(count)]


def test_what_comes_after_the_one_that_is_gone_on_from_is_removed(folder: CheckpointFolder):
    for epoch in (10, 20):
        save(folder, epoch)
    folder.write_shard(30, 0, 2, state_at(30))
    folder.remove_after(10)
    assert {name.partition("/")[0] for name in found(folder)} == {"epoch-000010"}


def test_no_clock_decides_which_one_is_the_newest(folder: CheckpointFolder):
    """The machine's clock jumped back a year between the two, and the older folder looks newer."""
    for epoch in (10, 20):
        save(folder, epoch)
    for file in (Path(folder.url) / "epoch-000020").iterdir():
        os.utime(file, (1.0, 1.0))
    os.utime(Path(folder.url) / "epoch-000020", (1.0, 1.0))
    assert newest(folder) == (20, [])
    save(folder, 30)
    assert newest(folder) == (30, [])
    assert not (Path(folder.url) / "epoch-000010").exists()


# ---- damage


def flip(path: Path, place: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


DAMAGES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "a byte of a shard": ("shard-1-of-2.safetensors", lambda path: flip(path, 0.9), "does not have its checksum"),
    "a shard's header": ("shard-0-of-2.safetensors", lambda path: flip(path, 0.0), "does not have its checksum"),
    "a shorter shard": ("shard-0-of-2.safetensors", truncate, "bytes, of"),
    "no shard": ("shard-1-of-2.safetensors", Path.unlink, "is missing"),
    "a manifest cut off": (MANIFEST, truncate, "cannot be read: "),
    "an empty manifest": (MANIFEST, lambda path: path.write_bytes(b""), "cannot be read: "),
    "another epoch": (
        MANIFEST,
        lambda path: path.write_text(path.read_text().replace('"epoch": 20', '"epoch": 21')),
        "does not have its checksum",
    ),
    "another's manifest": (
        MANIFEST,
        lambda path: path.write_bytes((path.parents[1] / "epoch-000010" / MANIFEST).read_bytes()),
        "is of epoch 10",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_one_before_is_taken_if_the_newest_is_damaged(folder: CheckpointFolder, damage: str):
    name, harm, words = DAMAGES[damage]
    for epoch in (10, 20):
        save(folder, epoch)
    harm(Path(folder.url) / "epoch-000020" / name)
    epoch, (note,) = newest(folder)
    assert epoch == 10
    assert note.startswith(f"the checkpoint of epoch 20 is damaged and is not used: {name} ")
    assert words in note
    with pytest.raises(CheckpointError, match="the checkpoint of epoch 20 in .* cannot be read"):
        read_checkpoint(f"{folder.url}/epoch-000020")


@pytest.mark.parametrize("place", np.linspace(0, 1, 40))
@pytest.mark.parametrize("name", [MANIFEST, "shard-0-of-1.safetensors"])
def test_no_changed_byte_is_overlooked(folder: CheckpointFolder, name: str, place: float):
    """A blank of the manifest may become another character: that is seen, too, or says nothing else."""
    state = save(folder, 20, count=1)
    flip(Path(folder.url) / "epoch-000020" / name, place)
    try:
        checkpoint = folder.newest()
    except CheckpointError:
        return
    assert checkpoint is not None
    assert name == MANIFEST
    assert (checkpoint.clock, checkpoint.job, bits(checkpoint.state)) == (clock_at(20), JOB, bits(state))


def test_a_crash_between_shards_and_manifest(folder: CheckpointFolder):
    save(folder, 10)
    for number in range(2):
        folder.write_shard(20, number, 2, state_at(20))
    assert newest(folder) == (10, ["the checkpoint of epoch 20 was never finished: it is not used"])


def test_only_unfinished_ones_are_as_good_as_none(folder: CheckpointFolder):
    folder.write_shard(20, 0, 2, state_at(20))
    assert newest(folder) == (None, ["the checkpoint of epoch 20 was never finished: it is not used"])


def test_if_all_are_damaged_the_error_lists_them(folder: CheckpointFolder):
    for epoch in (10, 20):
        save(folder, epoch)
        truncate(Path(folder.url) / f"epoch-0000{epoch}" / "shard-0-of-2.safetensors")
    with pytest.raises(CheckpointError) as error:
        folder.newest()
    assert error.value.what == f"no checkpoint in {folder.url} can be used"
    assert [part.partition(":")[0] for part in error.value.why.split("; ")] == ["epoch 20", "epoch 10"]
    assert "shard-0-of-2.safetensors has " in error.value.why
    assert "spec.yaml" in error.value.fix


# ---- what cannot be written


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """48 KB, for those who may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this user may mount no disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_full(tiny_disk: Path):
    folder = CheckpointFolder(str(tiny_disk))
    state = save(folder, 10, count=1)
    large = ShardState(20, {"weight": np.zeros((100, 500), np.float32)})
    with pytest.raises(CheckpointError) as error:
        folder.write_shard(20, 0, 1, large)
    assert str(error.value) == (
        f"the checkpoint of epoch 20 cannot be written to {tiny_disk}\n"
        "  why: shard-0-of-1.safetensors (200,128 bytes): No space left on device\n"
        "  fix: free space there; older checkpoints are unharmed"
    )
    assert os.listdir(tiny_disk) == ["epoch-000010"]
    checkpoint = folder.newest()
    assert checkpoint is not None
    assert bits(checkpoint.state) == bits(state)
    save(folder, 30, count=1)
    assert newest(folder) == (30, [])


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_when_the_manifest_is_written(folder: CheckpointFolder, monkeypatch: pytest.MonkeyPatch):
    save(folder, 10)
    files = [folder.write_shard(20, number, 2, state_at(20)) for number in range(2)]
    monkeypatch.setattr("common.storage.os.replace", full)
    with pytest.raises(CheckpointError, match=r"why: manifest.json: No space left on device"):
        folder.commit(clock_at(20), files, JOB)
    assert newest(folder) == (10, [])
    assert os.listdir(folder.url) == ["epoch-000010"]


def test_what_one_parameter_server_wrote_is_taken_back_when_another_failed(folder: CheckpointFolder):
    save(folder, 10)
    folder.write_shard(20, 0, 2, state_at(20))
    for epoch in (10, 20, 30):
        folder.discard(epoch)
    assert newest(folder) == (10, [])


def test_a_folder_that_is_a_file(tmp_path: Path):
    (tmp_path / "checkpoints").write_text("")
    folder = CheckpointFolder(str(tmp_path / "checkpoints"))
    with pytest.raises(CheckpointError) as error:
        folder.write_shard(10, 0, 1, state_at(10))
    assert error.value.what == f"the checkpoint of epoch 10 cannot be written to {folder.url}"
    assert "shard-0-of-1.safetensors" in error.value.why
    assert "Not a directory" in error.value.why or "File exists" in error.value.why
    assert error.value.fix == "make the folder writable for this user, or name another one with --output"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(folder: CheckpointFolder):
    save(folder, 10)
    Path(folder.url).chmod(0o500)
    with pytest.raises(CheckpointError, match="Permission denied"):
        save(folder, 20)
    assert newest(folder) == (10, [])


def test_what_cannot_be_deleted_does_not_spoil_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = CheckpointFolder(str(tmp_path), keep=1)
    save(folder, 10)
    monkeypatch.setattr("common.storage.shutil.rmtree", full)
    save(folder, 20)
    assert newest(folder) == (20, [])


# ---- a bucket


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with bucket(monkeypatch) as made:
        yield made


def test_the_same_in_a_bucket(s3: Bucket):
    folder = CheckpointFolder(f"{s3.url}/checkpoints", endpoint_url=s3.endpoint_url, keep=2)
    assert newest(folder) == (None, [])
    state = None
    for epoch in (10, 20, 30):
        state = save(folder, epoch, best=8)
    assert state is not None
    assert {name.split("/")[3] for name in s3.names()} == {"epoch-000010", "epoch-000020", "epoch-000030"}
    checkpoint = folder.newest()
    assert checkpoint is not None
    assert checkpoint.url == f"{s3.url}/checkpoints/epoch-000030"
    assert bits(read_checkpoint(checkpoint.url, endpoint_url=s3.endpoint_url).state) == bits(state)
    save(folder, 40, best=38)
    assert {name.split("/")[3] for name in s3.names()} == {"epoch-000030", "epoch-000040"}


def test_damage_in_a_bucket(s3: Bucket):
    folder = CheckpointFolder(f"{s3.url}/checkpoints", endpoint_url=s3.endpoint_url)
    for epoch in (10, 20, 30):
        save(folder, epoch)
    key = "runs/mine/checkpoints/epoch-0000{}/shard-1-of-2.safetensors"
    s3.client.delete_object(Bucket=BUCKET, Key=key.format(30))
    folder.write_shard(40, 0, 2, state_at(40))
    assert newest(folder) == (
        20,
        [
            "the checkpoint of epoch 40 was never finished: it is not used",
            "the checkpoint of epoch 30 is damaged and is not used: shard-1-of-2.safetensors is missing",
        ],
    )


def test_a_bucket_that_is_not_there(s3: Bucket):
    folder = CheckpointFolder("s3://nowhere/checkpoints", endpoint_url=s3.endpoint_url)
    with pytest.raises(CheckpointError) as unwritten:
        folder.write_shard(10, 0, 1, state_at(10))
    assert unwritten.value.what == "the checkpoint of epoch 10 cannot be written to s3://nowhere/checkpoints"
    assert unwritten.value.fix == "create the bucket of s3://nowhere/checkpoints, or correct its name"
    with pytest.raises(CheckpointError) as unread:
        folder.newest()
    assert str(unread.value) == (
        "the checkpoints in s3://nowhere/checkpoints cannot be listed\n"
        "  why: there is no bucket nowhere, or it may not be looked at\n"
        "  fix: create the bucket of s3://nowhere/checkpoints, or correct its name"
    )


def test_a_bucket_that_may_not_be_written(s3: Bucket, monkeypatch: pytest.MonkeyPatch):
    """As S3 says it: 403, AccessDenied."""
    folder = CheckpointFolder(f"{s3.url}/checkpoints", endpoint_url=s3.endpoint_url)
    deny = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", '
        f'"Resource": "arn:aws:s3:::{BUCKET}/*"}}]}}'
    )
    s3.client.put_bucket_policy(Bucket=BUCKET, Policy=deny)
    with pytest.raises(CheckpointError) as error:
        folder.write_shard(10, 0, 1, state_at(10))
    assert error.value.fix == (
        "allow s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject "
        f"below {s3.url}/checkpoints"
    )
