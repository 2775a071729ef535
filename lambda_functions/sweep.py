"""Nothing is left behind: instances, keys and members of jobs that are over, however they ended.

Three who call it
  the state machine, as its last step        {job_id}
  an execution that ended, whatever way      EventBridge: no catch sees a StopExecution or a deleted machine
  a schedule, while jobs are active          {}: every job whose execution is gone, every instance without a job
"""

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import boto3
from boto3.dynamodb.conditions import Key
from botocore.exceptions import ClientError

from common.cloud_names import JobState, execution_name, key_parameter
from lambda_functions.instances import instances, terminate, terminate_job
from lambda_functions.job_table import JobTable
from lambda_functions.run_status import write_status
from lambda_functions.stack_settings import StackSettings

GRACE_SECONDS = 120
"""A job is in the table before its execution has begun."""


def handler(event: Mapping[str, Any], context: object) -> dict[str, int]:
    """-> {instances}: terminated."""
    stack = StackSettings.read(os.environ)
    if "job_id" in event:
        return {"instances": tear_down(stack, event["job_id"])}
    if "detail" in event:
        job_id = json.loads(event["detail"]["input"])["job_id"]
        return {"instances": close(stack, job_id, event["detail"]["status"])}
    return {"instances": sweep_all(stack)}


def tear_down(stack: StackSettings, job_id: str) -> int:
    terminated = terminate_job(stack.stack, job_id)
    try:
        boto3.client("ssm").delete_parameter(Name=key_parameter(stack.stack, job_id))
    except ClientError as error:
        if error.response["Error"]["Code"] != "ParameterNotFound":
            raise
    _forget_members(stack, job_id)
    return terminated


def close(stack: StackSettings, job_id: str, status: str) -> int:
    """For an execution that is over: the job is, too."""
    state = JobState.STOPPED if status == "ABORTED" else JobState.FAILED
    reason = f"its state machine execution is {status}: it did not get to say why"
    if JobTable(stack.jobs_table).finish(job_id, state, reason):
        write_status(stack.bucket, job_id, state, reason)
        _tell(stack, job_id, state, reason)
    return tear_down(stack, job_id)


def sweep_all(stack: StackSettings) -> int:
    jobs = JobTable(stack.jobs_table)
    # Instances first: one that is launched after this look is younger than the set of active jobs read below.
    there, active = instances(stack.stack), jobs.active()
    terminated = terminate(one.id for one in there if one.job_id not in active)
    for job_id in active:
        record = jobs.find(job_id)
        if record is None or JobState(record["state"]).is_final:
            jobs.forget(job_id)
            terminated += tear_down(stack, job_id)
        elif int(time.time()) - int(record["created"]) > GRACE_SECONDS:
            status = _execution_status(stack, job_id)
            if status != "RUNNING":
                terminated += close(stack, job_id, status)
    if not jobs.active():
        _rest(stack, jobs)
    return terminated


def _rest(stack: StackSettings, jobs: JobTable) -> None:
    """The schedule sleeps until the next job. A job may have come just now: then it wakes again."""
    events = boto3.client("events")
    events.disable_rule(Name=stack.sweep_rule)
    if jobs.active():
        events.enable_rule(Name=stack.sweep_rule)


def _execution_status(stack: StackSettings, job_id: str) -> str:
    arn = f"{stack.state_machine.replace(':stateMachine:', ':execution:')}:{execution_name(job_id)}"
    client = boto3.client("stepfunctions")
    try:
        return str(client.describe_execution(executionArn=arn)["status"])
    except ClientError as error:
        if error.response["Error"]["Code"] in {"ExecutionDoesNotExist", "StateMachineDoesNotExist"}:
            return "GONE"
        raise


def _forget_members(stack: StackSettings, job_id: str) -> None:
    table = boto3.resource("dynamodb").Table(stack.members_table)
    found = table.query(KeyConditionExpression=Key("job_id").eq(job_id))["Items"]
    with table.batch_writer() as batch:
        for item in found:
            batch.delete_item(Key={"job_id": item["job_id"], "member": item["member"]})


def _tell(stack: StackSettings, job_id: str, state: JobState, reason: str) -> None:
    subject = f"{job_id} {state.value}"[-100:]
    boto3.client("sns").publish(TopicArn=stack.topic, Subject=subject, Message=reason)
