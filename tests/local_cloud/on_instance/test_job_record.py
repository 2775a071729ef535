"""What an instance writes holds for its own generation of a job that is not over."""

import threading

import pytest

from common.cloud_names import JobState, Phase
from common.errors import ClusterError
from local_cloud.on_instance import job_record as module
from local_cloud.on_instance.job_record import JobRecords, Superseded


@pytest.fixture
def records(cloud, aws, instance):
    cloud.record(generation=1, phase="train", state="Starting")
    return JobRecords(aws, "small-jobs", instance())


def test_a_beat_tells_what_others_have_written(cloud, records):
    before = records.read()
    assert (before.number("beat"), before.is_to_stop) == (0, False)
    cloud.jobs.set("job-1", {"stop": True})
    after = records.beat()
    assert after.number("beat") > 0
    assert after.is_to_stop


@pytest.mark.parametrize("change", [{"generation": 2}, {"phase": "cut"}, {"state": "Completed"}, {"state": "Stopped"}])
def test_nothing_is_written_when_the_job_goes_on_without_it(cloud, records, change):
    cloud.record(**{"generation": 1, "phase": "train", "state": "Training", **change})
    with pytest.raises(Superseded, match="generation 1 of job-1 has ended"):
        records.beat()
    assert records.read().number("beat") == 0


def test_a_state_changes_only_from_the_one_it_was(cloud, records):
    records.write({"state": JobState.TRAINING.value}, only_from=JobState.STARTING)
    cloud.jobs.set("job-1", {"state": "Stopping"})
    with pytest.raises(Superseded):
        records.write({"state": JobState.TRAINING.value}, only_from=JobState.STARTING)
    assert records.read().text("state") == "Stopping"


def test_the_record_speaks_of_this_generation_a_moment_after_the_launch(cloud, aws, instance, monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    cloud.record(generation=1, phase="train", function="old")
    records = JobRecords(aws, "small-jobs", instance(generation=2))
    later = threading.Timer(0.3, lambda: cloud.jobs.set("job-1", {"generation": 2, "function": "new"}))
    later.start()
    assert records.own().text("function") == "new"
    later.join()
    cloud.jobs.set("job-1", {"generation": 3})
    with pytest.raises(Superseded):
        records.own()


def test_a_job_that_nobody_knows(aws, cloud, instance):
    with pytest.raises(ClusterError, match="no job job-1 is known"):
        JobRecords(aws, "small-jobs", instance(phase=Phase.CUT)).read()
