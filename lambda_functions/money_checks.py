"""What would make a job fail after it has cost something: asked before.

Each check raises ClusterError in words; together they ask AWS half a dozen questions, none of which costs anything.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ClusterError
from common.price_table import US_EAST_1, PriceTable
from common.pricing import MIN_SERVER_SECONDS, instance_hour, spot_share
from lambda_functions.cut_graph import CutGraph
from lambda_functions.estimate import check_budget
from lambda_functions.job_request import JobRequest
from lambda_functions.stack_settings import Place

T = TypeVar("T")
LOG = logging.getLogger(__name__)
VCPU_QUOTAS = {False: "L-1216C47A", True: "L-34B43A08"}
"""Spot -> code of the quota of running standard instances, in vCPUs. Source: Service Quotas, EC2."""
LEAST_SECONDS = 5 * MIN_SERVER_SECONDS
"""Boot, load, one epoch, tear down."""


def check_before_money(
    request: JobRequest, places: Sequence[Place], graph: CutGraph | None, prices: PriceTable = US_EAST_1
) -> tuple[str, ...]:
    """The zones that offer the instance type, in our order. `graph`: None if it is not cut yet; then the cutter
    holds the budget against the estimate, before there are servers."""
    zones = offered_zones(request.spec.cluster.instance_type, [place.zone for place in places])
    check_vcpus(request)
    if request.uses_functions:
        check_concurrency(request)
        for place in places:
            if place.zone in zones:
                wake(place.function)
    check_start(request, prices)
    if graph is not None:
        check_budget(graph.spec, graph.sizes, request.most_usd, prices)
    return zones


def offered_zones(instance_type: str, zones: Sequence[str]) -> tuple[str, ...]:
    filters = [{"Name": "instance-type", "Values": [instance_type]}]
    ec2 = boto3.client("ec2")
    found = ec2.describe_instance_type_offerings(LocationType="availability-zone", Filters=filters)
    offering = {offer["Location"] for offer in found["InstanceTypeOfferings"]}
    ours = tuple(zone for zone in zones if zone in offering)
    if not ours:
        raise ClusterError(
            f"{instance_type} is not offered in {', '.join(zones)}",
            why=f"it is offered in {', '.join(sorted(offering))}" if offering else "this region does not have it",
            fix="choose another cluster.instance_type",
        )
    return ours


def check_vcpus(request: JobRequest) -> None:
    cluster = request.spec.cluster
    described = boto3.client("ec2").describe_instance_types(InstanceTypes=[cluster.instance_type])
    needed = request.num_servers * int(described["InstanceTypes"][0]["VCpuInfo"]["DefaultVCpus"])
    quota = answer(lambda: _vcpu_quota(spot=cluster.spot))
    if quota is None:
        return
    if needed > quota:
        raise ClusterError(
            f"{request.num_servers} x {cluster.instance_type} have {needed} vCPUs",
            why=f"the account's quota of running {'spot' if cluster.spot else 'on-demand'} instances is {quota:g}",
            fix="use fewer or smaller servers, or ask for more in Service Quotas",
        )


def check_concurrency(request: JobRequest) -> None:
    """New accounts have 10. A number that nobody gave gives way; one that was given is an error."""
    backend = request.spec.backend
    free = answer(_free_functions)
    if free is None:
        return
    wanted = backend.max_lambdas if "max_lambdas" in backend.model_fields_set else backend.min_lambdas
    if wanted > free:
        raise ClusterError(
            f"{wanted} functions at once",
            why=f"the account's Lambda concurrency is {free}",
            fix=f"set backend.max_lambdas to {free} or less, or ask for more in Service Quotas",
        )


def answer(question: Callable[[], T]) -> T | None:
    """None where AWS does not say. It will refuse what is too much anyway, within a minute: we only say so earlier."""
    try:
        return question()
    except (ClientError, BotoCoreError) as error:
        LOG.warning("a quota is not known: %s", error)
        return None


def _vcpu_quota(*, spot: bool) -> float:
    found = boto3.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=VCPU_QUOTAS[spot])
    return float(found["Quota"]["Value"])


def _free_functions() -> int:
    limit = boto3.client("lambda").get_account_settings()["AccountLimit"]
    return int(limit.get("UnreservedConcurrentExecutions", limit["ConcurrentExecutions"]))


def wake(function: str) -> None:
    """Lambda puts a function to sleep that was not used for weeks: the first invocation fails, and wakes it."""
    client = boto3.client("lambda")
    found: dict[str, Any] = client.get_function_configuration(FunctionName=function)
    state = found.get("State", "Active")
    if state == "Failed":
        raise ClusterError(f"function {function} cannot be invoked", why=str(found.get("StateReason", "")))
    if state == "Inactive":
        try:
            client.invoke(FunctionName=function, Payload=b"{}")
        except ClientError as error:
            LOG.info("%s was asleep: %s", function, error)


def check_start(request: JobRequest, prices: PriceTable) -> None:
    """Whatever the graph is."""
    least = least_cost_usd(request, prices)
    if least > request.most_usd:
        raise ClusterError(
            f"the budget is ${request.most_usd:g}",
            why=f"{LEAST_SECONDS // 60} minutes of {request.num_servers} servers alone cost ${least:.2f}",
            fix="raise budget.max_cost_usd, or use fewer or smaller servers",
        )


def least_cost_usd(request: JobRequest, prices: PriceTable) -> float:
    """Of the servers, for the shortest job there is."""
    cluster = request.spec.cluster
    hour = instance_hour(cluster.instance_type, prices) * (spot_share(prices)[0] if cluster.spot else 1.0)
    return request.num_servers * hour * LEAST_SECONDS / 3600
