"""An object under jobs/ becomes a job: validated, checked, recorded, started. Or a status.json that says why not.

Repeated events do nothing: an upload is (bucket, key, version), it makes one job id, one record, one execution. A new
upload of the same content is refused while such a job runs, for it is more often a slip than a wish.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.exceptions import ClientError

from common.cloud_names import JobState, execution_name, run_key
from common.errors import DorylusError, SpecError
from common.job_spec import job_name_from
from common.pricing import price_note, prices_of
from lambda_functions.cut_graph import cut_graph
from lambda_functions.job_dataset import JobDataset, find_dataset
from lambda_functions.job_request import MAX_BYTES, JobRequest, read_request
from lambda_functions.job_table import JobTable, NewJob
from lambda_functions.money_checks import check_before_money
from lambda_functions.run_status import write_status
from lambda_functions.stack_settings import StackSettings
from lambda_functions.upload_event import Upload, upload_of

LOG = logging.getLogger(__name__)


def handler(event: Mapping[str, Any], context: object) -> dict[str, str]:
    """-> {job_id, state}; nothing for the empty object that a console makes for a folder."""
    stack, upload = StackSettings.read(os.environ), upload_of(event)
    if not upload.file_name:
        return {}
    jobs = JobTable(stack.jobs_table)
    if known := jobs.find(f"upload#{upload.digest}"):
        return _again(stack, jobs, known["job_id"])
    job_id = new_job_id(job_name_from(upload.file_name.rpartition(".")[0]), upload)
    try:
        assert stack.limits is not None
        body = _body(upload)
        request = read_request(_text(body, upload), upload.file_name, stack.bucket, stack.limits)
        job_id = new_job_id(request.spec.name, upload)
        dataset = find_dataset(request.spec, stack.bucket, stack.limits.dataset_buckets)
        graph = cut_graph(request.spec, dataset.graph, stack.bucket)
        zones = check_before_money(request, stack.places, graph, prices_of(os.environ.get("AWS_REGION")))
        record = _record(job_id, request, dataset, upload) | {"zones": list(zones)}
        if not _admit(jobs, record, upload, hashlib.sha256(body).hexdigest()):
            return _again(stack, jobs, job_id)
    except DorylusError as error:
        write_status(stack.bucket, job_id, JobState.FAILED, str(error))
        LOG.warning("%s: %s", job_id, error.what)
        return {"job_id": job_id, "state": JobState.FAILED.value}
    in_prices = price_note(os.environ.get("AWS_REGION"))
    write_status(stack.bucket, job_id, JobState.PENDING, notes=(*request.notes, *([in_prices] if in_prices else [])))
    _start(stack, job_id)
    return {"job_id": job_id, "state": JobState.PENDING.value}


def new_job_id(name: str, upload: Upload) -> str:
    """<name>-<UTC yyyymmddThhmmss>-<6 hex>, the same for the same upload."""
    return f"{name}-{upload.time:%Y%m%dT%H%M%S}-{upload.digest[:6]}"


def _again(stack: StackSettings, jobs: JobTable, job_id: str) -> dict[str, str]:
    """The event was told before; if the last time ended between record and execution, it is started now."""
    record = jobs.get(job_id)
    if record["state"] == JobState.PENDING.value:
        _start(stack, job_id)
    return {"job_id": job_id, "state": record["state"]}


def _body(upload: Upload) -> bytes:
    if upload.num_bytes > MAX_BYTES:
        raise SpecError(
            f"{upload.file_name} has {upload.num_bytes:,} bytes",
            why=f"a job spec has at most {MAX_BYTES:,} here",
            fix="datasets belong under datasets/",
        )
    where = {"Bucket": upload.bucket, "Key": upload.key}
    version = {"VersionId": upload.version} if upload.version else {}
    body: bytes = boto3.client("s3").get_object(**where, **version)["Body"].read()
    return body


def _text(body: bytes, upload: Upload) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{upload.file_name} is not UTF-8 text", why=f"byte {error.start} is no part of it") from None


def _record(job_id: str, request: JobRequest, dataset: JobDataset, upload: Upload) -> dict[str, Any]:
    """docs/deploy/contract.md says what each is for."""
    spec, now = request.spec, int(time.time())
    return {
        "id": job_id,
        "state": JobState.PENDING.value,
        "failure_reason": "",
        "spec": spec.model_dump_json(exclude_unset=True),
        "source": f"s3://{upload.bucket}/{upload.key}",
        "output": f"s3://{upload.bucket}/{run_key(job_id)}",
        "dataset": dataset.path,
        "graph": dataset.graph,
        "generation": 0,
        "max_restarts": spec.cluster.max_restarts,
        "num_servers": request.num_servers,
        "num_graph_servers": spec.cluster.num_graph_servers,
        "num_parameter_servers": spec.cluster.num_parameter_servers,
        "instance_types": [spec.cluster.instance_type],
        "spot": spec.cluster.spot,
        "max_lambdas": request.num_lambdas,
        "max_cost_usd": str(request.most_usd),
        "created": now,
        "updated": now,
        "beat": now,
        "deadline": now + request.seconds,
    }


def _admit(jobs: JobTable, record: Mapping[str, Any], upload: Upload, content: str) -> bool:
    """False if the same event, told twice at once, was faster. Raises SpecError while a job of that content runs."""
    last = jobs.find(f"content#{content}")
    replaces = last["job_id"] if last else ""
    if replaces not in jobs.active() and jobs.start(NewJob(record, upload.digest, content, replaces)):
        return True
    if jobs.find(f"upload#{upload.digest}"):
        return False
    raise SpecError(
        f"the same spec runs already, as job {replaces or 'that was started just now'}",
        why="two jobs that are alike are more often a slip than a wish",
        fix="wait for its end or stop it; or change something, such as the name",
    )


def _start(stack: StackSettings, job_id: str) -> None:
    """The sweeper first: if this function dies on the next line, it is there to notice."""
    boto3.client("events").enable_rule(Name=stack.sweep_rule)
    try:
        boto3.client("stepfunctions").start_execution(
            stateMachineArn=stack.state_machine,
            name=execution_name(job_id),
            input=json.dumps({"job_id": job_id}),
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
            raise
