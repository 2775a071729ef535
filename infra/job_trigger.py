"""An object under jobs/ starts a job, an object runs/<id>/STOP stops one. Both come by EventBridge."""

from pathlib import Path

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_s3 as s3
from constructs import Construct

from common.cloud_names import DATASETS, DEFAULTS, GRAPHS, JOBS, MANIFEST, RUNS, STOP
from infra.job_functions import JobFunctions
from infra.python_function import PythonFunction, allow
from infra.tensor_function import TensorFunctions


class JobTrigger(Construct):
    """`code`: with the job spec's schema; `step_code`: without it, for who only looks at records."""

    def __init__(
        self, scope: Construct, functions: JobFunctions, tensor: TensorFunctions, *, code: Path, step_code: Path
    ) -> None:
        super().__init__(scope, "JobTrigger")
        context = functions.context
        limits = {**context.limits.model_dump(mode="json"), "function_memory_mb": context.function_memory_mb}
        environment = {
            "DORYLUS_STATE_MACHINE": functions.machine_arn(self),
            "DORYLUS_SWEEP_RULE": functions.sweep_rule,
            "DORYLUS_PLACES": Stack.of(self).to_json_string(tensor.places),
            "DORYLUS_LIMITS": Stack.of(self).to_json_string(limits),
        }
        self.trigger = functions.make(self, "job_trigger", code, seconds=60, environment=environment)
        self._allow(functions, tensor)
        self.stop = functions.make(self, "stop_job", step_code, seconds=30)
        bucket = functions.storage.bucket
        self._on_upload("JobUploaded", bucket, {"prefix": JOBS}, self.trigger)
        self._on_upload("StopUploaded", bucket, {"wildcard": f"{RUNS}*/{STOP}"}, self.stop)

    def _on_upload(self, name: str, bucket: s3.IBucket, key: dict[str, str], to: PythonFunction) -> None:
        events.Rule(
            self,
            name,
            event_pattern=events.EventPattern(
                source=["aws.s3"],
                detail_type=["Object Created"],
                detail={"bucket": {"name": [bucket.bucket_name]}, "object": {"key": [key]}},
            ),
            targets=[targets.LambdaFunction(to.function, retry_attempts=10, max_event_age=Duration.hours(2))],
        )

    def _allow(self, functions: JobFunctions, tensor: TensorFunctions) -> None:
        role, bucket, others = self.trigger.role, functions.storage.bucket, functions.context.limits.dataset_buckets
        allow(role, ["s3:GetObject", "s3:GetObjectVersion"], [bucket.arn_for_objects(f"{JOBS}*")])
        allow(role, ["s3:GetObject"], [bucket.arn_for_objects(f"{GRAPHS}*/{name}") for name in (MANIFEST, DEFAULTS)])
        prefixes = {"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in (JOBS, DATASETS, GRAPHS)]}}
        allow(role, ["s3:ListBucket"], [bucket.bucket_arn], prefixes)
        if others:
            allow(role, ["s3:ListBucket"], [f"arn:{Stack.of(self).partition}:s3:::{name}" for name in others])
        functions.may_write_status(self.trigger)
        allow(role, ["dynamodb:PutItem"], [functions.storage.jobs.table_arn])
        allow(role, ["states:StartExecution"], [functions.machine_arn(self)])
        allow(role, ["events:EnableRule"], [functions.sweep_rule_arn(self)])
        allow(role, ["lambda:GetFunctionConfiguration", "lambda:InvokeFunction"], tensor.arns)
        questions = ("ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings", "lambda:GetAccountSettings")
        allow(role, [*questions, "servicequotas:GetServiceQuota"], ["*"])
