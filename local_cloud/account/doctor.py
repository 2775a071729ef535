"""Is this account ready for a job? Each check asks AWS one thing and says what it found, and what to do about it."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import DorylusError
from common.pricing import prices_of
from local_cloud.account.deployment import Account, Deployment, NotThere, said_by

ON_DEMAND_VCPUS, SPOT_VCPUS = "L-1216C47A", "L-34B43A08"
"""Quota codes of EC2, standard instances."""
FEW_LAMBDAS = 100
"""New accounts may run ten functions at once."""
IPV6_SERVICES = ("s3", "dynamodb", "lambda", "ssm", "logs", "states")
"""What servers without an IPv4 address reach over IPv6."""


@dataclass(frozen=True)
class Check:
    """fix: empty where all is well."""

    what: str
    is_well: bool
    found: str
    fix: str = ""


def examine(account: Account, name: str) -> Iterator[Check]:
    """One after the other; without credentials nothing else is asked."""
    credentials = _asked("credentials", lambda: _credentials(account), fix="aws configure, or aws sso login")
    yield credentials
    if not credentials.is_well:
        return
    yield _asked("stack", lambda: _stack(account, name), fix=f"cdk deploy -c dorylus:name={name}")
    endpoints = _endpoints(account, name)
    for function in _functions(account, name):
        yield _asked(f"function {function}", partial(_function, account, function), fix="cdk deploy once more")
    yield _asked("concurrent functions", lambda: _concurrency(account), fix="look at it in the Lambda console")
    for what, code in (("on-demand vCPUs", ON_DEMAND_VCPUS), ("spot vCPUs", SPOT_VCPUS)):
        yield _asked(what, partial(_quota, account, what, code), fix="look at it in Service Quotas")
    prices = prices_of(account.where)
    yield Check("prices", True, account.price_note or f"of {prices.region}, {prices.date}")
    if endpoints:
        hour = endpoints * prices.interface_endpoint_hour
        said = f"{endpoints}, each counted in each zone: ${hour:.2f} an hour, whether a job runs or not"
        yield Check("private endpoints", True, said)
    elif account.endpoint_url is None:
        for service in IPV6_SERVICES:
            yield _over_ipv6(account, service)


def _asked(what: str, ask: Callable[[], Check], *, fix: str) -> Check:
    try:
        return ask()
    except ClientError as error:
        return Check(what, False, said_by(error), fix)
    except DorylusError as error:
        return Check(what, False, f"{error.what}: {error.why}", fix)
    except BotoCoreError as error:
        return Check(what, False, str(error), fix)


def _credentials(account: Account) -> Check:
    who = account.client("sts").get_caller_identity()
    return Check("credentials", True, f"account {who['Account']}, {who['Arn']}")


def _stack(account: Account, name: str) -> Check:
    deployment = Deployment.find(account, name)
    (found,) = account.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    is_well = found["StackStatus"].endswith("_COMPLETE") and "ROLLBACK" not in found["StackStatus"]
    fix = "" if is_well else "cdk deploy once more; the events in CloudFormation say what failed"
    return Check("stack", is_well, f"{found['StackStatus']}, bucket {deployment.bucket}", fix)


def _endpoints(account: Account, name: str) -> int:
    """Private ones: with these nothing is reached over IPv6. 0 without a stack."""
    try:
        return Deployment.find(account, name).site.endpoints
    except NotThere:
        return 0


def _functions(account: Account, name: str) -> list[str]:
    """Of the stack's tensor tasks."""
    try:
        pages = account.client("lambda").get_paginator("list_functions").paginate()
        names = [function["FunctionName"] for page in pages for function in page["Functions"]]
    except (ClientError, BotoCoreError):
        return []
    return sorted(found for found in names if found.startswith(f"{name}-tensor-"))


def _function(account: Account, function: str) -> Check:
    found = account.client("lambda").get_function_configuration(FunctionName=function)
    state, what = found.get("State", "Active"), f"function {function}"
    if state == "Inactive":
        return Check(what, True, "Inactive: it was idle for long; the job's trigger wakes it, which takes a minute")
    is_well = state == "Active" and found.get("LastUpdateStatus", "Successful") == "Successful"
    said = f"{state}, {found.get('LastUpdateStatus', '')} {found.get('StateReason', '')}".strip(", ")
    return Check(what, is_well, said, "" if is_well else "cdk deploy once more")


def _concurrency(account: Account) -> Check:
    limits = account.client("lambda").get_account_settings()["AccountLimit"]
    free = int(limits["UnreservedConcurrentExecutions"])
    is_well = free >= FEW_LAMBDAS
    fix = (
        "" if is_well else "ask for more in Service Quotas (Lambda, concurrent executions), or set backend.max_lambdas"
    )
    return Check("concurrent functions", is_well, f"{free} may run at once", fix)


def _quota(account: Account, what: str, code: str) -> Check:
    quota: Any = account.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]
    value = int(quota["Value"])
    fix = "" if value >= 8 else f"ask for more in Service Quotas (EC2, {code})"
    return Check(what, value >= 8, f"{value} may run at once", fix)


def _over_ipv6(account: Account, service: str) -> Check:
    region = account.client("sts").meta.region_name
    host = f"{service}.dualstack.{region}.amazonaws.com" if service == "s3" else f"{service}.{region}.api.aws"
    what = f"{service} over IPv6"
    try:
        socket.getaddrinfo(host, 443, family=socket.AF_INET6)
    except OSError as error:
        return Check(what, False, f"{host}: {error}", "deploy with -c dorylus:endpoints=private where it has none")
    return Check(what, True, f"{host} has an address")
