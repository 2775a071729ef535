"""Files come and go whole, in as many pieces as they need."""

import os
from pathlib import Path

import pytest

from common.errors import ClusterError
from local_cloud.on_instance import bucket as module
from local_cloud.on_instance.bucket import Bucket


@pytest.fixture
def bucket(cloud, aws) -> Bucket:
    return Bucket(aws, cloud.bucket)


def test_ranges_come_together(bucket, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(module, "RANGE_BYTES", 1000)
    contents = {"a.bin": os.urandom(5500), "deep/b.bin": os.urandom(1000), "empty": b""}
    for name, data in contents.items():
        bucket.write(f"graphs/x.dorylus/{name}", data)
    bucket.write("graphs/x.dorylus-other/c", b"no")
    found = bucket.keys("graphs/x.dorylus/")
    assert sorted(found) == sorted(f"graphs/x.dorylus/{name}" for name in contents)
    bucket.fetch(found, "graphs/x.dorylus/", tmp_path / "x")
    assert {name: (tmp_path / "x" / name).read_bytes() for name in contents} == contents


def test_a_large_file_goes_in_parts(bucket, tmp_path: Path, monkeypatch):
    part = 5 * 2**20  # the least that S3 takes
    monkeypatch.setattr(module, "PART_BYTES", part)
    (tmp_path / "large").write_bytes(data := os.urandom(2 * part + 17))
    bucket.send(tmp_path / "large", "runs/large")
    assert bucket.read("runs/large") == data


def test_a_folder_goes_with_its_manifest_last(bucket, tmp_path: Path):
    for name in ("manifest.json", "ids.npy", "intervals/00000/labels.npy"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    order = []
    send = bucket.send
    bucket.send = lambda path, key: (order.append(key), send(path, key))
    bucket.send_folder(tmp_path, "graphs/y/", last="manifest.json")
    assert order[-1] == "graphs/y/manifest.json"
    assert sorted(order) == ["graphs/y/ids.npy", "graphs/y/intervals/00000/labels.npy", "graphs/y/manifest.json"]


def test_what_is_not_there(bucket, aws, tmp_path: Path):
    assert bucket.read("runs/nothing") is None
    assert bucket.keys("runs/nothing") == []
    with pytest.raises(ClusterError, match="s3://nobody/x cannot be reached"):
        Bucket(aws, "nobody").read("x")


def test_a_key_cannot_lead_out_of_its_folder(bucket, tmp_path: Path):
    with pytest.raises(ClusterError, match="leads out of its folder"):
        bucket.fetch(["datasets/x/../../evil"], "datasets/x/", tmp_path / "x")
