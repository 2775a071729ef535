"""What became of a job: in its record, in its run folder, in the mail."""

import json

from lambda_functions.collect import handler
from lambda_functions.step_errors import in_words

SUMMARY = json.dumps({"test_accuracy": 0.81, "epochs": 100, "cost_usd": 0.03})


def test_a_completed_job(cloud):
    cloud.record()
    cloud.put("runs/job-1/summary.json", SUMMARY)
    answer = handler({"job_id": "job-1", "result": {"state": "Completed"}}, None)
    assert answer["state"] == "Completed"
    assert answer["subject"] == "job-1 Completed"
    assert "s3://small-bucket/runs/job-1/" in answer["message"]
    assert "test_accuracy  0.81" in answer["message"]
    assert cloud.jobs.get("job-1")["state"] == "Completed"
    assert cloud.read("runs/job-1/status.json")["state"] == "Completed"
    assert cloud.jobs.active() == set()


def test_completed_without_a_summary_is_a_failure(cloud):
    cloud.record()
    assert handler({"job_id": "job-1", "result": {"state": "Completed"}}, None)["state"] == "Failed"
    assert "without a summary.json" in cloud.jobs.get("job-1")["failure_reason"]


def test_an_error_of_a_step_is_told_in_its_own_words(cloud):
    cloud.record(boot_error="no space left on device")
    cause = json.dumps({"errorMessage": "3 servers could not be had at once", "errorType": "NoCapacity"})
    answer = handler({"job_id": "job-1", "error": {"Error": "NoCapacity", "Cause": cause}}, None)
    assert answer["state"] == "Failed"
    reason = cloud.read("runs/job-1/status.json")["failure_reason"]
    assert reason == "3 servers could not be had at once; a server did not come up: no space left on device"


def test_a_stop_is_no_failure(cloud):
    cloud.record()
    assert handler({"job_id": "job-1", "error": {"Error": "StopRequested", "Cause": ""}}, None)["state"] == "Stopped"


def test_what_is_over_stays_so(cloud):
    cloud.record(state="Stopped", failure_reason="by hand")
    cloud.put("runs/job-1/summary.json", SUMMARY)
    answer = handler({"job_id": "job-1", "result": {"state": "Completed"}}, None)
    assert answer["state"] == "Stopped"
    assert cloud.read("runs/job-1/status.json")["failure_reason"] == "by hand"


def test_errors_in_words():
    assert in_words({"Error": "States.HeartbeatTimeout"}) == "no sign of life from parameter server 0"
    assert in_words({"Error": "PeerLost", "Cause": "graph1 is gone"}) == "graph1 is gone"
    assert in_words({"Error": "Runtime", "Cause": "[1]"}) == "[1]"
    assert in_words({}) == "the cause is not known"
