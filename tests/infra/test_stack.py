"""The template, rule by rule: what must be there, and above all what must not."""

import json
from pathlib import Path

import aws_cdk as cdk
import cfnlint.api
import pytest
from aws_cdk import aws_s3 as s3
from cfnlint.config import ManualArgs

from common.allocator import MALLOC
from common.cloud_names import SERVER_PORT
from infra.acknowledgements import add_rules
from infra.idle_cost import as_table, idle_costs

ROOT = Path(__file__).resolve().parents[2]
W3005 = "W3005"
"""The CDK says twice that a function comes after its role; that is harmless."""


@pytest.fixture(params=["default", "other"])
def either(request):
    return request.getfixturevalue(request.param)


def text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


# ------------------------------------------------------------------------------------------------ network


def test_nothing_has_an_hourly_price_and_nothing_comes_in(default):
    for kind in ("NatGateway", "InternetGateway", "EIP", "VPCGatewayAttachment", "Instance", "TransitGateway"):
        assert not default.of_type(f"EC2::{kind}")
    assert not any(one["MapPublicIpOnLaunch"] for one in default.of_type("EC2::Subnet").values())
    assert {one["VpcEndpointType"] for one in default.of_type("EC2::VPCEndpoint").values()} == {"Gateway"}


def test_out_goes_by_ipv6_alone_and_only_out(default):
    (gateway,) = default.of_type("EC2::EgressOnlyInternetGateway")
    routes = list(default.of_type("EC2::Route").values())
    assert len(routes) == 3
    for route in routes:
        assert route["DestinationIpv6CidrBlock"] == "::/0"
        assert route["EgressOnlyInternetGatewayId"] == {"Ref": gateway}
        assert "DestinationCidrBlock" not in route


def test_s3_and_dynamodb_have_gateway_endpoints_in_every_zone(default):
    endpoints = list(default.of_type("EC2::VPCEndpoint").values())
    assert {text(one["ServiceName"]).split(".")[-1].rstrip('"]}') for one in endpoints} == {"s3", "dynamodb"}
    assert all(len(one["RouteTableIds"]) == 3 for one in endpoints)


def test_private_endpoints_replace_the_way_out(other):
    assert not other.of_type("EC2::Route")
    interface = [one for one in other.of_type("EC2::VPCEndpoint").values() if one["VpcEndpointType"] == "Interface"]
    services = {text(one["ServiceName"]).split(".")[-1].rstrip('"]}') for one in interface}
    assert services == {"ssm", "ssmmessages", "states", "lambda", "logs"}
    assert all(len(one["SubnetIds"]) == 2 and one["PrivateDnsEnabled"] for one in interface)


def test_only_functions_and_servers_reach_servers(default):
    groups = default.of_type("EC2::SecurityGroup")
    assert not any("SecurityGroupIngress" in one for one in groups.values())
    functions = next(name for name, one in groups.items() if "functions" in one["GroupDescription"])
    servers = next(name for name, one in groups.items() if "graph servers" in one["GroupDescription"])
    ingress = default.of_type("EC2::SecurityGroupIngress").values()
    assert {(source(one, "SourceSecurityGroupId"), source(one, "GroupId")) for one in ingress} == {
        (functions, servers),
        (servers, servers),
    }
    assert {(one["IpProtocol"], one["FromPort"], one["ToPort"]) for one in ingress} == {
        ("tcp", SERVER_PORT, SERVER_PORT)
    }
    egress = default.of_type("EC2::SecurityGroupEgress").values()
    assert {(source(one, "GroupId"), source(one, "DestinationSecurityGroupId")) for one in egress} == {
        (functions, servers),
        (servers, servers),
    }
    assert "SecurityGroupEgress" not in groups[functions]
    assert {(one["FromPort"], one["ToPort"]) for one in groups[servers]["SecurityGroupEgress"]} == {(443, 443)}


def source(rule: dict, key: str) -> str:
    return str(rule[key]["Fn::GetAtt"][0])


# ------------------------------------------------------------------------------------------------ storage


def test_the_bucket_is_versioned_encrypted_private_and_stays(either):
    bucket = either.only("S3::Bucket")
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["PublicAccessBlockConfiguration"] == dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    encryption = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption == [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    assert bucket["NotificationConfiguration"] == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    rules = {one["Id"]: one for one in bucket["LifecycleConfiguration"]["Rules"]}
    assert rules["replaced"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 7}
    assert rules["old-runs"]["Prefix"] == "runs/"
    assert not any("ExpirationInDays" in rule for rule in rules.values())


def test_only_tls_is_let_to_the_bucket_and_the_topic(either):
    for kind in ("S3::BucketPolicy", "SNS::TopicPolicy"):
        statements = either.only(kind)["PolicyDocument"]["Statement"]
        assert any(
            one["Effect"] == "Deny" and one["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
            for one in statements
        )


def test_only_the_bucket_outlives_the_stack(either):
    kept = [one["Type"] for one in either.template["Resources"].values() if one.get("DeletionPolicy") == "Retain"]
    assert kept == ["AWS::S3::Bucket"]
    for kind in ("AWS::Logs::LogGroup", "AWS::DynamoDB::Table"):
        found = [one for one in either.template["Resources"].values() if one["Type"] == kind]
        assert all(one["DeletionPolicy"] == "Delete" for one in found)


def test_tables_cost_by_the_request_and_forget_by_themselves(either):
    tables = {one["TableName"]: one for one in either.of_type("DynamoDB::Table").values()}
    assert set(tables) == {f"{either.name}-jobs", f"{either.name}-members"}
    for table in tables.values():
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    keys = [(one["AttributeName"], one["KeyType"]) for one in tables[f"{either.name}-members"]["KeySchema"]]
    assert keys == [("job_id", "HASH"), ("member", "RANGE")]


def test_every_log_has_an_end(either):
    groups = list(either.of_type("Logs::LogGroup").values())
    assert {one["RetentionInDays"] for one in groups} == {30 if either.name == "dorylus" else 7}
    functions = either.of_type("Lambda::Function").values()
    assert all("LogGroup" in one["LoggingConfig"] for one in functions)
    assert len(groups) == len(functions) + 2


# ------------------------------------------------------------------------------------------------ functions


def test_there_is_a_tensor_function_in_every_zone(either):
    zones, architecture = (3, "arm64") if either.name == "dorylus" else (2, "x86_64")
    functions = [either.function(f"tensor-{number}") for number in range(zones)]
    assert len({text(one["VpcConfig"]["SubnetIds"]) for one in functions}) == zones
    for one in functions:
        assert len(one["VpcConfig"]["SubnetIds"]) == 1
        assert one["Architectures"] == [architecture]
        assert one["Handler"] == "lambda_functions.tensor_task.handler"
        assert (one["MemorySize"], one["Timeout"]) == (1769, 900)
        assert one["Environment"]["Variables"] == {"OPENBLAS_NUM_THREADS": "1", **MALLOC}


def test_all_functions_have_the_python_of_the_servers(either):
    functions = either.of_type("Lambda::Function").values()
    assert {one["Runtime"] for one in functions} == {"python3.14"}
    assert "python3.14" in (ROOT / "infra/server/install.sh").read_text(encoding="utf-8")


def test_tensor_code_may_do_nothing_in_aws(either):
    statements = either.statements("TensorFunctionstensor0")
    allowed = {action for one in statements if one["Effect"] == "Allow" for action in one["Action"]}
    denied = {action for one in statements if one["Effect"] == "Deny" for action in one["Action"]}
    assert {action for action in allowed if not action.startswith("logs:")} == denied
    (deny,) = [one for one in statements if one["Effect"] == "Deny"]
    assert "lambda:SourceFunctionArn" in deny["Condition"]["ArnEquals"]


def test_no_function_is_public_and_no_secret_is_in_an_environment(either):
    assert not either.of_type("Lambda::Url")
    sources = {one["Principal"] for one in either.of_type("Lambda::Permission").values()}
    assert sources == {"events.amazonaws.com"}
    for one in either.of_type("Lambda::Function").values():
        assert not {name for name in one["Environment"]["Variables"] if "SECRET" in name or "KEY" in name}


# ------------------------------------------------------------------------------------------------ servers


def test_servers_are_hard_to_get_into_and_easy_to_get_rid_of(either):
    templates = [one["LaunchTemplateData"] for one in either.of_type("EC2::LaunchTemplate").values()]
    assert len(templates) == 2
    for one in templates:
        assert one["MetadataOptions"] == {
            "HttpPutResponseHopLimit": 1,
            "HttpTokens": "required",
            "InstanceMetadataTags": "enabled",
        }
        assert one["InstanceInitiatedShutdownBehavior"] == "terminate"
        disks = [mapping["Ebs"] for mapping in one["BlockDeviceMappings"]]
        assert all(disk["Encrypted"] and disk["DeleteOnTermination"] for disk in disks)
        assert "KeyName" not in one
        assert "NetworkInterfaces" not in one


def test_the_first_thing_a_server_does_is_to_plan_its_end(either):
    for one in either.of_type("EC2::LaunchTemplate").values():
        words = text(one["LaunchTemplateData"]["UserData"])
        assert words.index("shutdown -P +30") < words.index("set -euo")
        assert "OPENBLAS_NUM_THREADS=1" in words
        assert all(f"{name}={value}" in words for name, value in MALLOC.items())
        dual_stack = "true" if either.name == "dorylus" else "false"
        assert f"AWS_USE_DUALSTACK_ENDPOINT={dual_stack}" in words
        assert len(words) < 16_000


def test_units_run_the_server_and_the_switch_with_that_environment():
    units = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "infra/server").glob("*.service")}
    assert set(units) == {"dorylus-server.service", "dorylus-dead-man.service", "dorylus-spot-notice.service"}
    assert all("EnvironmentFile=/etc/dorylus/environment" in unit for unit in units.values())
    assert "Restart=no" in units["dorylus-server.service"]


def test_only_the_launcher_makes_instances_and_only_ours(either):
    launcher = "Orchestrationlaunchservers"
    (passes,) = either.allows(launcher, "iam:PassRole")
    (role,) = [name for name in either.of_type("IAM::Role") if name.startswith("ServersRole")]
    assert passes["Resource"] == [{"Fn::GetAtt": [role, "Arn"]}]
    assert passes["Condition"] == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    (runs,) = either.allows(launcher, "ec2:RunInstances")
    assert "*" not in runs["Resource"]
    assert "ec2:LaunchTemplate" in runs["Condition"]["ArnEquals"]
    (tags,) = either.allows(launcher, "ec2:CreateTags")
    assert tags["Condition"] == {"StringEquals": {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}}
    policies = either.of_type("IAM::Policy")
    who = {name.split("Role")[0] for name, one in policies.items() if "ec2:RunInstances" in text(one)}
    assert who == {launcher}
    assert {name.split("Role")[0] for name, one in policies.items() if "iam:PassRole" in text(one)} == {launcher}


def test_only_instances_of_this_stack_can_be_terminated(either):
    for part in ("Orchestrationlaunchservers", "Sweepersweep"):
        (one,) = either.allows(part, "ec2:TerminateInstances")
        assert one["Condition"] == {"StringEquals": {"ec2:ResourceTag/dorylus-stack": either.name}}


def test_only_servers_read_the_keys_of_a_job(either):
    readers = {
        name.split("Role")[0] for name, one in either.of_type("IAM::Policy").items() if "ssm:GetParameter" in text(one)
    }
    assert readers == {"Servers"}
    (one,) = either.allows("Servers", "ssm:GetParameter")
    assert f"parameter/{either.name}/jobs/*" in text(one["Resource"])


def test_servers_write_to_run_folders_and_graph_folders_only(either):
    (one,) = either.allows("ServersRole", "s3:PutObject")
    written = {text(resource) for resource in one["Resource"]}
    assert len(written) == 2
    assert all("/runs/*" in place or "/graphs/*" in place for place in written)
    (deletes,) = either.allows("ServersRole", "s3:DeleteObject")
    assert "/runs/*/checkpoints/*" in text(deletes["Resource"])
    assert not [one for one in either.statements("ServersRole") if any("*" in action for action in one["Action"])]


def test_datasets_come_from_the_buckets_that_were_named(other):
    (one,) = [each for each in other.allows("ServersRole", "s3:GetObject") if "/datasets/*" in text(each)]
    assert ":s3:::colleagues/*" in text(one["Resource"])
    limits = other.function("job-trigger")["Environment"]["Variables"]["DORYLUS_LIMITS"]
    assert json.loads(limits)["dataset_buckets"] == ["colleagues", "archive"]


def test_no_policy_allows_all_of_a_service(either):
    for name in either.of_type("IAM::Policy"):
        for one in either.statements(name):
            assert not [action for action in one["Action"] if "*" in action and one["Effect"] == "Allow"], name


# ------------------------------------------------------------------------------------------------ events, money, rules


def test_the_sweeper_sleeps_until_a_job_comes(either):
    rules = {one.get("Name"): one for one in either.of_type("Events::Rule").values()}
    assert rules[f"{either.name}-sweep"]["State"] == "DISABLED"
    patterns = [one["EventPattern"] for one in either.of_type("Events::Rule").values() if "EventPattern" in one]
    ends = next(one for one in patterns if one["source"] == ["aws.states"])
    assert set(ends["detail"]["status"]) == {"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"}


def test_uploads_start_jobs_and_stop_them(either):
    patterns = [one["EventPattern"] for one in either.of_type("Events::Rule").values() if "EventPattern" in one]
    keys = [one["detail"]["object"]["key"] for one in patterns if one["source"] == ["aws.s3"]]
    assert sorted(keys, key=text) == [[{"prefix": "jobs/"}], [{"wildcard": "runs/*/STOP"}]]


def test_idle_it_costs_nothing_and_the_documentation_says_the_same(default):
    costs = idle_costs(default.template)
    assert sum(one.usd_per_hour for one in costs) == 0
    assert as_table(costs) in (ROOT / "docs/deploy/costs.md").read_text(encoding="utf-8")


def test_private_endpoints_are_counted(other):
    assert sum(one.usd_per_hour for one in idle_costs(other.template)) == pytest.approx(5 * 2 * 0.01)
    assert other.template["Outputs"]["PrivateEndpoints"]["Value"] == str(5 * 2)
    assert other.template["Outputs"]["FunctionArchitecture"]["Value"] == "x86_64"
    (arm64, x86_64) = other.of_type("EC2::LaunchTemplate").values()
    for template in (arm64, x86_64):
        for line in ("DISK_GB=100", "PRIVATE_ENDPOINTS=10", "FUNCTION_ARCHITECTURE=x86_64"):
            assert f"\\nDORYLUS_{line}\\n" in text(template["LaunchTemplateData"]["UserData"])


def test_a_resource_without_a_known_price_is_an_error(default):
    template = {"Resources": {**default.template["Resources"], "Nat": {"Type": "AWS::EC2::NatGateway"}}}
    with pytest.raises(Exception, match="no price is known for AWS::EC2::NatGateway"):
        idle_costs(template)


def test_cfn_lint_finds_nothing(either):
    matches = cfnlint.api.lint(json.dumps(either.template), config=ManualArgs(regions=["us-east-1"]))
    assert not [f"{one.rule.id} {one.message}" for one in matches if one.rule.id != W3005]


def test_a_finding_that_is_not_acknowledged_fails_the_synthesis(tmp_path):
    """As it would have failed those above."""
    app = cdk.App(outdir=str(tmp_path))
    add_rules(app)
    s3.Bucket(cdk.Stack(app, "bare"), "Bucket")
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
