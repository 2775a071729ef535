"""What people see: one dashboard, a few alarms, and the topic that tells them; within CloudWatch's free allowance."""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.context import Context

NAMESPACE = "Dorylus"
"""Of the metrics that parameter server 0 writes into its log, in embedded metric format; their dimension is Stack."""
JOB_METRICS = ("EpochSeconds", "TrainLoss", "ValidMetric", "OpenLeases", "CostUsd")
FIVE_MINUTES = Duration.minutes(5)


class Notices(Construct):
    """The topic that a job's end and every alarm is told to."""

    def __init__(self, scope: Construct, context: Context) -> None:
        super().__init__(scope, "Notices")
        self.topic = sns.Topic(self, "Topic", topic_name=f"{context.name}-notices", enforce_ssl=True)
        # A policy of its own, such as that for TLS, takes the place of the one that lets the account's alarms in.
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": self.topic.stack.account}},
            )
        )
        if context.notify_email:
            self.topic.add_subscription(subscriptions.EmailSubscription(context.notify_email))


class Monitoring(Construct):
    """`helpers`: the functions of the job's machinery, whose every error is worth a look."""

    def __init__(
        self,
        scope: Construct,
        context: Context,
        machine: stepfunctions.IStateMachine,
        *,
        tensor: Sequence[lambda_.IFunction],
        helpers: Sequence[lambda_.IFunction],
        topic: sns.ITopic,
    ) -> None:
        super().__init__(scope, "Monitoring")
        self._context, self._machine, self._tensor, self._helpers = context, machine, tensor, helpers
        self._alarms(topic)
        if context.dashboard:
            self._dashboard()

    def _alarms(self, topic: sns.ITopic) -> None:
        throttles = _sum("throttles", [one.metric_throttles(period=FIVE_MINUTES) for one in self._tensor])
        errors = _sum("errors", [one.metric_errors(period=FIVE_MINUTES) for one in self._helpers])
        alarms = {
            "JobTimedOut": (
                self._machine.metric_timed_out(period=FIVE_MINUTES),
                "a job's execution ran into its time-out",
            ),
            "TensorThrottled": (throttles, "the account's Lambda concurrency is too small for its jobs"),
            "MachineryFailed": (errors, "a function that starts, launches, collects or sweeps failed: see its log"),
        }
        for name, (metric, description) in alarms.items():
            alarm = cloudwatch.Alarm(
                self,
                name,
                alarm_name=f"{self._context.name}-{name}",
                alarm_description=description,
                metric=metric,
                threshold=1,
                evaluation_periods=1,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            )
            alarm.add_alarm_action(actions.SnsAction(topic))

    def _dashboard(self) -> None:
        machine, tensor = self._machine, self._tensor
        ended = [
            machine.metric_started(),
            machine.metric_succeeded(),
            machine.metric_failed(),
            machine.metric_timed_out(),
        ]
        jobs = [
            cloudwatch.Metric(namespace=NAMESPACE, metric_name=name, dimensions_map={"Stack": self._context.name})
            for name in JOB_METRICS
        ]
        rows = [
            [_graph("Jobs", ended), _graph("Epochs", jobs[:1]), _graph("Loss and metric", jobs[1:3])],
            [
                _graph("Leases at once", [one.metric("ConcurrentExecutions", statistic="Maximum") for one in tensor]),
                _graph("Lease duration", [one.metric_duration() for one in tensor]),
                _graph(
                    "Lease errors, throttles",
                    [m for one in tensor for m in (one.metric_errors(), one.metric_throttles())],
                ),
            ],
            [_graph("Open leases", jobs[3:4]), _graph("Spent, USD", jobs[4:])],
        ]
        cloudwatch.Dashboard(self, "Dashboard", dashboard_name=self._context.name, widgets=rows)


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=8)


def _sum(name: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.MathExpression:
    using = {f"m{number}": metric for number, metric in enumerate(metrics)}
    return cloudwatch.MathExpression(expression="+".join(using), using_metrics=using, label=name, period=FIVE_MINUTES)
