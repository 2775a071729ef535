"""The run folder and the bucket: what changed goes there, once; what earlier generations left comes back."""

from pathlib import Path

import pytest

from local_cloud.on_instance.bucket import Bucket
from local_cloud.on_instance.mirror import Mirror


@pytest.fixture
def bucket(cloud, aws) -> Bucket:
    return Bucket(aws, cloud.bucket)


def test_what_has_changed_goes_once(bucket, cloud, tmp_path: Path):
    sent = []
    send = bucket.send
    bucket.send = lambda path, key: (sent.append(path.name), send(path, key))
    mirror = Mirror(bucket, tmp_path, "job-1")
    (tmp_path / "metrics.jsonl").write_text("1\n")
    (tmp_path / "trace.jsonl").write_text("t\n")
    (tmp_path / ".summary.json.17").write_text("half of it")
    mirror.send()
    mirror.send()
    (tmp_path / "metrics.jsonl").write_text("1\n2\n")
    mirror.send()
    mirror.send(all_of_it=True)
    assert sent == ["metrics.jsonl", "metrics.jsonl", "trace.jsonl"]
    assert cloud.keys("runs/") == ["runs/job-1/metrics.jsonl", "runs/job-1/trace.jsonl"]


def test_the_next_generation_goes_on_with_it(bucket, cloud, tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    (first / "metrics.jsonl").write_text("1\n")
    (first / "weights.safetensors").write_bytes(b"large")
    Mirror(bucket, first, "job-1").send(all_of_it=True)
    again = Mirror(bucket, second, "job-1")
    again.fetch()
    assert [path.name for path in second.iterdir()] == ["metrics.jsonl"]
    assert (second / "metrics.jsonl").read_text() == "1\n"
