"""The synthesised stack as if it were deployed into a test's world: what its policies say, in that world's names.

The world has the names that the functions' environment says; what a template leaves open gets one here.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.infra.policy import Policy, Statement
from tests.infra.synthesis import Synthesis

ACCOUNT, REGION = "123456789012", "us-east-1"
PSEUDO = {"AWS::Partition": "aws", "AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::URLSuffix": "amazonaws.com"}
ARNS = {
    "AWS::DynamoDB::Table": "dynamodb:{region}:{account}:table/{TableName}",
    "AWS::IAM::Role": "iam::{account}:role/{id}",
    "AWS::Lambda::Function": "lambda:{region}:{account}:function:{FunctionName}",
    "AWS::Logs::LogGroup": "logs:{region}:{account}:log-group:{LogGroupName}:*",
    "AWS::S3::Bucket": "s3:::{known}",
    "AWS::SNS::Topic": "sns:{region}:{account}:{TopicName}",
    "AWS::StepFunctions::StateMachine": "states:{region}:{account}:stateMachine:{StateMachineName}",
}
ARN_BY_REF = frozenset({"AWS::SNS::Topic", "AWS::StepFunctions::StateMachine"})


def arn(service: str, resource: str) -> str:
    """Of this world's account and region."""
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


@dataclass(frozen=True)
class Deployed:
    synthesis: Synthesis

    def policy(self, part: str) -> Policy:
        """Of the role whose policies' logical ids begin so."""
        return Policy(tuple(self._statement(one) for one in self.synthesis.statements(part)))

    @cached_property
    def server_role(self) -> str:
        """That the launch templates' instance profile bears."""
        profile = next(iter(self.synthesis.of_type("IAM::InstanceProfile").values()))
        return self._arn_of(profile["Roles"][0]["Ref"])

    @cached_property
    def server_group(self) -> str:
        template = next(iter(self.synthesis.of_type("EC2::LaunchTemplate").values()))
        (group,) = template["LaunchTemplateData"]["SecurityGroupIds"]
        return self.text(group)

    @cached_property
    def definition(self) -> dict[str, Any]:
        """The state machine's states, its places filled in."""
        machine = self.synthesis.only("StepFunctions::StateMachine")
        words = str(machine["DefinitionString"])
        for name, value in machine["DefinitionSubstitutions"].items():
            words = words.replace(f"${{{name}}}", self.text(value))
        found: dict[str, Any] = json.loads(words)["States"]
        return found

    def text(self, value: Any) -> str:
        """What CloudFormation would put there."""
        match value:
            case str():
                return value
            case {"Ref": name}:
                return PSEUDO.get(name) or self._ref(name)
            case {"Fn::GetAtt": [name, "Arn"]}:
                return self._arn_of(name)
            case {"Fn::GetAtt": [name, "GroupId"]}:
                return f"sg-{name}"
            case {"Fn::Join": [between, parts]}:
                return str(between).join(self.text(part) for part in parts)
            case {"Fn::Sub": words}:
                for name, meant in PSEUDO.items():
                    words = words.replace(f"${{{name}}}", meant)
                return str(words)
        raise AssertionError(f"{value} has no text here")

    def _ref(self, name: str) -> str:
        kind = self.synthesis.template["Resources"][name]["Type"]
        if kind in ARN_BY_REF:
            return self._arn_of(name)
        return self._known.get(name) or self._arn_of(name).rpartition("/")[2].rpartition(":")[2]

    def _arn_of(self, name: str) -> str:
        resource = self.synthesis.template["Resources"][name]
        names = {**resource.get("Properties", {}), "id": name, "known": self._known.get(name, name)}
        return "arn:aws:" + ARNS[resource["Type"]].format(region=REGION, account=ACCOUNT, **names)

    @cached_property
    def _known(self) -> Mapping[str, str]:
        """Logical id -> what the world calls it, as its functions are told."""
        (bucket,) = self.synthesis.of_type("S3::Bucket")
        subnets = sorted(self.synthesis.of_type("EC2::Subnet"))
        places = [place["subnet"] for place in json.loads(os.environ["DORYLUS_PLACES"])]
        templates = json.loads(os.environ["DORYLUS_TEMPLATES"])
        known = dict(zip(subnets, places, strict=True))
        for name, one in self.synthesis.of_type("EC2::LaunchTemplate").items():
            known[name] = templates[one["LaunchTemplateName"].rpartition(f"{self.synthesis.name}-")[2]]["id"]
        return {**known, bucket: os.environ["DORYLUS_BUCKET"]}

    def _statement(self, one: Mapping[str, Any]) -> Statement:
        conditions = {
            operator: {key: tuple(self.text(value) for value in _list(values)) for key, values in keys.items()}
            for operator, keys in one.get("Condition", {}).items()
        }
        resources = tuple(self.text(each) for each in one["Resource"])
        return Statement(one["Effect"], tuple(one["Action"]), resources, conditions)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
