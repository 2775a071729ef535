"""What a caller sees, with boto3: results, errors, logs, sizes, the three kinds of invocation."""

import base64
import json
import os

import botocore.exceptions
import pytest

from tests.local_cloud.lambda_service.meeting import Meeting
from tests.local_cloud.lambda_service.running import HANDLERS, Running

ARN = "arn:aws:lambda:us-east-1:123456789012:function"
MAX_REQUEST = 6 * 1024 * 1024


def test_a_result_comes_back(service: Running):
    event = {"numbers": [1, 2.5, None], "text": "∇Gather — größer"}
    reply = service.invoke("echo", event)
    assert (reply.status, reply.error, reply.body) == (200, None, event)


def test_the_answer_names_version_and_request(service: Running):
    answer = service.client.invoke(FunctionName="echo")
    assert answer["ExecutedVersion"] == "$LATEST"
    assert len(answer["ResponseMetadata"]["RequestId"]) == 36
    assert json.load(answer["Payload"]) == {}


@pytest.mark.parametrize(
    "name", ["echo", "echo:$LATEST", "123456789012:function:echo", f"{ARN}:echo", f"{ARN}:echo:$LATEST"]
)
def test_a_function_is_found_by_name_and_arn(service: Running, name: str):
    assert service.invoke(name, 7).body == 7


@pytest.mark.parametrize("options", [{"FunctionName": "nobody"}, {"FunctionName": "echo", "Qualifier": "3"}])
def test_an_unknown_function_or_version_is_not_found(service: Running, options: dict[str, str]):
    with pytest.raises(service.client.exceptions.ResourceNotFoundException, match="Function not found: arn:aws:lambda"):
        service.client.invoke(**options)


def test_an_exception_comes_back_with_its_trace(service: Running):
    reply = service.invoke("fail", {"what": "noise"})
    assert (reply.status, reply.error) == (200, "Unhandled")
    assert reply.body["errorType"] == "ValueError"
    assert reply.body["errorMessage"] == "cannot bear noise"
    assert len(reply.body["stackTrace"]) == 1
    assert "handlers.py" in reply.body["stackTrace"][0]
    assert "raise ValueError" in reply.body["stackTrace"][0]


def test_an_exception_does_not_end_the_worker(service: Running):
    service.invoke("fail", {"what": "a"})
    workers = [worker for worker in service.get("/_workers") if worker["function"] == "fail"]
    service.invoke("fail", {"what": "b"})
    assert [worker for worker in service.get("/_workers") if worker["function"] == "fail"] == workers


def test_a_result_that_is_no_json_is_an_error(service: Running):
    reply = service.invoke("no_json")
    assert (reply.error, reply.body["errorType"]) == ("Unhandled", "Runtime.MarshalError")
    assert "Unable to marshal response" in reply.body["errorMessage"]


def test_the_log_tail_holds_both_streams_between_start_and_report(service: Running):
    log = service.invoke("say", {"lines": ["first", "second"]}, LogType="Tail").log
    assert log is not None
    for part in ("START RequestId: ", "first\n", "second\n", "the end\n", "END RequestId: ", "Billed Duration: "):
        assert part in log
    assert log.index("START") < log.index("first") < log.index("END") < log.index("REPORT")
    assert "Memory Size: 512 MB" in log


def test_a_log_is_of_its_own_invocation_and_only_if_asked_for(service: Running):
    service.invoke("say", {"lines": ["of the one before"]})
    reply = service.invoke("say", {"lines": ["now"]}, LogType="Tail")
    assert reply.log is not None
    assert "of the one before" not in reply.log
    assert service.invoke("say", {"lines": []}).log is None


def test_a_long_log_is_cut_to_its_last_4_kb(service: Running):
    lines = [f"line {number:06d} " + "." * 80 for number in range(3000)]
    reply = service.invoke("say", {"lines": lines}, LogType="Tail")
    assert reply.log is not None
    assert len(reply.log.encode()) == 4096
    assert "line 002999" in reply.log
    assert "line 000001" not in reply.log


def test_an_error_stands_in_the_log(service: Running):
    log = service.invoke("fail", {"what": "heat"}, LogType="Tail").log
    assert log is not None
    assert "[ERROR] ValueError: cannot bear heat" in log


def test_the_context(service: Running):
    told = service.invoke("describe").body
    remaining = told.pop("remaining")
    assert len(told.pop("request_id")) == 36
    assert told == {
        "arn": f"{ARN}:describe",
        "name": "describe",
        "version": "$LATEST",
        "memory": "512",
        "log_group": "/aws/lambda/describe",
        "has_client_context": False,
    }
    assert 0 < remaining <= 20_000


def test_the_client_context_reaches_the_function(service: Running):
    context = base64.b64encode(json.dumps({"custom": {"a": "b"}}, indent=1).encode()).decode()
    assert service.invoke("describe", ClientContext=context).body["has_client_context"]
    with pytest.raises(botocore.exceptions.ClientError, match="Client context must be a valid Base64"):
        service.invoke("describe", ClientContext="no base64")


def test_a_function_has_the_documented_environment_and_no_other(service: Running):
    told = service.invoke("environment").body
    environment = told["environment"]
    expected = {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_LAMBDA_FUNCTION_NAME": "environment",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/environment",
        "AWS_REGION": "us-east-1",
        "LAMBDA_TASK_ROOT": str(HANDLERS),
        "OPENBLAS_NUM_THREADS": "1",
        "_HANDLER": "handlers.environment",
    }
    assert {key: environment.get(key) for key in expected} == expected
    others = {"AWS_LAMBDA_LOG_STREAM_NAME", "AWS_LAMBDA_RUNTIME_API", "LAMBDA_RUNTIME_DIR", "_X_AMZN_TRACE_ID"}
    of_any_process = {"LANG", "PATH", "PYTHONPATH", "TZ"}
    of_the_system = {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
    assert set(environment) - of_the_system == set(expected) | others | of_any_process


def test_the_function_runs_in_its_task_root(service: Running):
    told = service.invoke("environment").body
    assert told["folder"] == os.path.realpath(HANDLERS)
    assert str(HANDLERS) in told["path"]
    assert not [place for place in told["path"] if place.endswith("lambda_service") and place != str(HANDLERS)]


def test_the_largest_request_passes_and_one_byte_more_does_not(service: Running):
    largest = json.dumps("x" * (MAX_REQUEST - 2))
    assert len(largest) == MAX_REQUEST
    reply = service.client.invoke(FunctionName="echo", Payload=largest)
    assert reply["Payload"].read().decode() == largest
    with pytest.raises(service.client.exceptions.RequestTooLargeException, match="must be smaller than 6291456 bytes"):
        service.client.invoke(FunctionName="echo", Payload=json.dumps("x" * (MAX_REQUEST - 1)))


def test_an_event_may_have_256_kb(service: Running):
    limit = 256 * 1024
    options = {"FunctionName": "echo", "InvocationType": "Event"}
    assert service.client.invoke(Payload=json.dumps("x" * (limit - 2)), **options)["StatusCode"] == 202
    with pytest.raises(service.client.exceptions.RequestTooLargeException, match="must be smaller than 262144 bytes"):
        service.client.invoke(Payload=json.dumps("x" * (limit - 1)), **options)


def test_a_request_that_is_no_json_is_refused(service: Running):
    with pytest.raises(service.client.exceptions.InvalidRequestContentException, match="Could not parse request body"):
        service.client.invoke(FunctionName="echo", Payload=b"{no json")


def test_an_event_is_accepted_at_once_and_runs_later(service: Running, meeting: Meeting):
    answer = service.client.invoke(FunctionName="meet", InvocationType="Event", Payload=json.dumps(meeting.event))
    assert answer["StatusCode"] == 202
    assert answer["Payload"].read() == b""
    meeting.meet().let_go()


def test_a_dry_run_runs_nothing(service: Running):
    before = service.invoke("count").body["count"]
    requests = service.meter()["requests"]
    answer = service.client.invoke(FunctionName="count", InvocationType="DryRun")
    assert answer["StatusCode"] == 204
    assert service.meter()["requests"] == requests
    assert service.invoke("count").body["count"] == before + 1
    with pytest.raises(service.client.exceptions.ResourceNotFoundException):
        service.client.invoke(FunctionName="nobody", InvocationType="DryRun")


def test_an_unknown_kind_of_invocation_is_refused(service: Running):
    with pytest.raises(service.client.exceptions.InvalidParameterValueException, match="'Later' is not Request"):
        service.client.invoke(FunctionName="echo", InvocationType="Later")


def test_waiters_and_configuration(service: Running):
    service.client.get_waiter("function_active_v2").wait(FunctionName="grow")
    service.client.get_waiter("function_updated").wait(FunctionName="grow")
    told = service.client.get_function_configuration(FunctionName="grow")
    assert (told["MemorySize"], told["Timeout"], told["Handler"]) == (128, 20, "handlers.grow")
    with pytest.raises(service.client.exceptions.ResourceNotFoundException):
        service.client.get_function(FunctionName="nobody")
