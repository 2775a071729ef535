"""Nothing outlives its job: the sweeper, called by the state machine, by the end of an execution, and by a schedule.

The schedule is asleep while no job is active: the job trigger wakes it, the sweeper puts it back to sleep.
"""

from pathlib import Path

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.job_functions import JobFunctions
from infra.python_function import allow, allow_terminate, own_arn

EVERY_MINUTES = 5
ENDED = ("SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")


class Sweeper(Construct):
    def __init__(self, scope: Construct, functions: JobFunctions, code: Path) -> None:
        super().__init__(scope, "Sweeper")
        self._functions = functions
        environment = {
            "DORYLUS_MEMBERS_TABLE": functions.storage.members.table_name,
            "DORYLUS_STATE_MACHINE": functions.machine_arn(self),
            "DORYLUS_SWEEP_RULE": functions.sweep_rule,
            "DORYLUS_TOPIC": functions.topic.topic_arn,
        }
        self.sweep = functions.make(self, "sweep", code, seconds=90, environment=environment)
        self._allow()
        target = targets.LambdaFunction(self.sweep.function, retry_attempts=10, max_event_age=Duration.hours(2))
        events.Rule(
            self,
            "Schedule",
            rule_name=functions.sweep_rule,
            description="while jobs are active: the job trigger enables it, the sweeper disables it",
            schedule=events.Schedule.rate(Duration.minutes(EVERY_MINUTES)),
            enabled=False,
            targets=[target],
        )
        events.Rule(
            self,
            "ExecutionEnded",
            description="what no catch of the state machine sees",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={"stateMachineArn": [functions.machine_arn(self)], "status": list(ENDED)},
            ),
            targets=[target],
        )

    def _allow(self) -> None:
        role, functions = self.sweep.role, self._functions
        allow(role, ["ec2:DescribeInstances"], ["*"])
        allow_terminate(role, self, functions.context.name)
        allow(role, ["ssm:DeleteParameter"], [own_arn(self, "ssm", f"parameter/{functions.context.name}/jobs/*")])
        members = functions.storage.members.table_arn
        allow(role, ["dynamodb:Query", "dynamodb:BatchWriteItem"], [members])
        allow(role, ["states:DescribeExecution"], [functions.execution_arns(self)])
        allow(role, ["events:EnableRule", "events:DisableRule"], [functions.sweep_rule_arn(self)])
        allow(role, ["sns:Publish"], [functions.topic.topic_arn])
        functions.may_write_status(self.sweep)
