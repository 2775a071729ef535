"""One face, two places: the same promises over a folder and over a bucket; and what goes wrong in each."""

import errno
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from common.storage import Storage, is_remote, open_storage
from tests.buckets import BUCKET, Bucket, bucket


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with bucket(monkeypatch) as made:
        yield made


@pytest.fixture(params=["folder", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return open_storage(str(tmp_path / "runs" / "mine"))
    made: Bucket = request.getfixturevalue("s3")
    return open_storage(made.url, endpoint_url=made.endpoint_url)


def test_what_is_written_is_read_again_and_replaced(storage: Storage):
    assert storage.folders() == []
    storage.write("first/a.bin", b"one")
    storage.write("first/a.bin", b"another")
    storage.write("second/b.bin", b"")
    assert storage.read("first/a.bin") == b"another"
    assert storage.read("second/b.bin") == b""
    assert storage.folders() == ["first", "second"]


def test_what_is_not_there(storage: Storage):
    storage.write("first/a.bin", b"one")
    for name in ("first/b.bin", "second/a.bin"):
        with pytest.raises(FileNotFoundError):
            storage.read(name)
    storage.remove("second")


def test_a_folder_is_removed_with_all_that_is_in_it(storage: Storage):
    for name in ("first/a.bin", "first/b.bin", "first-too/a.bin"):
        storage.write(name, b"one")
    storage.remove("first")
    storage.remove("first")
    assert storage.folders() == ["first-too"]


def test_requests_are_counted_as_s3_bills_them(storage: Storage):
    """A write and a listing at 5 dollars a million, a read at 0.4, a removal, but for its listing, for nothing."""
    counts = [dict(storage.requests)]
    for ask in (
        lambda: storage.write("first/a.bin", b"one"),
        lambda: storage.read("first/a.bin"),
        lambda: storage.folders(),
        lambda: storage.remove("first"),
    ):
        ask()
        counts.append(dict(storage.requests))
    if not is_remote(storage.url):
        assert counts == [{}] * 5
        return
    steps = [tuple(after[name] - before[name] for name in after) for before, after in pairwise(counts)]
    assert list(counts[0]) == ["s3_reads", "s3_writes"]
    assert steps[0] == (0, 1)
    assert steps[1][0] >= 1
    assert steps[1][1] == 0
    assert steps[2] == (0, 1)
    assert steps[3][1] >= 1


# ---- a folder


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is always full")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    storage = open_storage(str(tmp_path))
    storage.write("first/a.bin", b"one")
    monkeypatch.setattr("common.storage.secrets.token_hex", lambda _: "beside")
    (tmp_path / "first" / f".a.bin.{os.getpid()}-beside").symlink_to("/dev/full")
    with pytest.raises(OSError) as full:
        storage.write("first/a.bin", b"another")
    assert full.value.errno == errno.ENOSPC
    assert [entry.name for entry in (tmp_path / "first").iterdir()] == ["a.bin"]
    assert storage.read("first/a.bin") == b"one"


def test_a_write_that_fails_takes_back_the_folders_it_made(tmp_path: Path):
    storage = open_storage(str(tmp_path))
    with pytest.raises(OSError):
        storage.write(f"first/second/{'long' * 100}", b"one")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_where_the_folder_should_be(tmp_path: Path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(OSError):
        open_storage(str(tmp_path / "runs")).write("first/a.bin", b"one")


# ---- a bucket


def test_names_below_the_prefix(s3: Bucket):
    open_storage(s3.url + "/", endpoint_url=s3.endpoint_url).write("first/a.bin", b"one")
    assert s3.names() == ["runs/mine/first/a.bin"]


def test_what_another_writes_is_seen_at_once(s3: Bucket):
    here, there = (open_storage(s3.url, endpoint_url=s3.endpoint_url) for _ in range(2))
    assert here.folders() == []
    there.write("first/a.bin", b"one")
    assert here.folders() == ["first"]
    there.write("first/a.bin", b"another")
    assert here.read("first/a.bin") == b"another"
    s3.client.delete_object(Bucket=BUCKET, Key="runs/mine/first/a.bin")
    assert here.folders() == []


def test_a_bucket_that_is_not_there_is_no_empty_bucket(s3: Bucket):
    storage = open_storage("s3://nowhere/runs", endpoint_url=s3.endpoint_url)
    with pytest.raises(FileNotFoundError, match="there is no bucket nowhere"):
        storage.folders()
    with pytest.raises(OSError, match="bucket does not exist"):
        storage.write("first/a.bin", b"one")


def test_without_credentials_or_a_connection_it_is_an_os_error(s3: Bucket, monkeypatch: pytest.MonkeyPatch):
    nobody = open_storage(s3.url, endpoint_url="http://127.0.0.1:9")
    monkeypatch.setattr("s3fs.core.S3FileSystem.retries", 1)
    with pytest.raises(OSError, match="Could not connect"):
        nobody.read("first/a.bin")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(OSError, match="credentials"):
        open_storage(s3.url, endpoint_url=s3.endpoint_url).read("first/a.bin")
