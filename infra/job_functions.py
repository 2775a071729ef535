"""What the functions of a job's machinery have in common: their code, the records of jobs, and where to tell people."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import aws_sns as sns
from constructs import Construct

from common.cloud_names import RUNS
from infra.context import Context
from infra.python_function import FunctionShape, PythonFunction, allow, own_arn
from infra.storage import Storage


@dataclass(frozen=True)
class JobFunctions:
    context: Context
    storage: Storage
    topic: sns.ITopic

    def make(
        self, scope: Construct, module: str, code: Path, *, seconds: int, environment: Mapping[str, str] | None = None
    ) -> PythonFunction:
        """lambda_functions/<module>.py. It may read and change the jobs' records, and nothing else yet."""
        shape = FunctionShape(
            name=module.replace("_", "-"),
            handler=f"lambda_functions.{module}.handler",
            code=code,
            environment={
                "DORYLUS_STACK": self.context.name,
                "DORYLUS_BUCKET": self.storage.bucket.bucket_name,
                "DORYLUS_JOBS_TABLE": self.storage.jobs.table_name,
                **(environment or {}),
            },
            seconds=seconds,
        )
        made = PythonFunction(scope, self.context, shape)
        allow(made.role, ["dynamodb:GetItem", "dynamodb:UpdateItem"], [self.storage.jobs.table_arn])
        return made

    def may_write_status(self, made: PythonFunction) -> None:
        allow(made.role, ["s3:PutObject"], [self.storage.bucket.arn_for_objects(f"{RUNS}*/status.json")])

    def machine_arn(self, scope: Construct) -> str:
        return own_arn(scope, "states", f"stateMachine:{self.machine_name}")

    def execution_arns(self, scope: Construct) -> str:
        return own_arn(scope, "states", f"execution:{self.machine_name}:*")

    def sweep_rule_arn(self, scope: Construct) -> str:
        return own_arn(scope, "events", f"rule/{self.sweep_rule}")

    @property
    def machine_name(self) -> str:
        return f"{self.context.name}-job"

    @property
    def sweep_rule(self) -> str:
        return f"{self.context.name}-sweep"
