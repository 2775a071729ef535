"""The tensor functions: one per availability zone, so that rows never cross from one to another, which is billed.

They need nothing of AWS but a network interface in their zone: the ticket of an invocation says whom to dial. Lambda
sends their logs without the VPC.
"""

from pathlib import Path

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from common.allocator import MALLOC
from infra.context import Context
from infra.network import Network
from infra.python_function import FunctionShape, PythonFunction, VpcPlace, allow

HANDLER = "lambda_functions.tensor_task.handler"
SECONDS = 900
"""Lambda's most. A lease ends by itself long before, at backend.lease_seconds."""
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", **MALLOC}
"""Before NumPy loads, and before the first allocation."""


class TensorFunctions(Construct):
    def __init__(self, scope: Construct, context: Context, network: Network, code: Path) -> None:
        super().__init__(scope, "TensorFunctions")
        self.functions: list[lambda_.Function] = []
        for number, subnet in enumerate(network.subnets):
            shape = FunctionShape(
                name=f"tensor-{number}",
                handler=HANDLER,
                code=code,
                environment=ENVIRONMENT,
                seconds=SECONDS,
                memory_mb=context.function_memory_mb,
            )
            place = VpcPlace(network.vpc, subnet, network.functions)
            made = PythonFunction(self, context, shape, place=place)
            self.functions.append(made.function)
        self._zones = [subnet.availability_zone for subnet in network.subnets]
        self._subnets = [subnet.subnet_id for subnet in network.subnets]

    @property
    def arns(self) -> list[str]:
        return [function.function_arn for function in self.functions]

    @property
    def places(self) -> list[dict[str, str]]:
        """Zone, subnet and function of each, as DORYLUS_PLACES has them."""
        return [
            {"zone": zone, "subnet": subnet, "function": function.function_name}
            for zone, subnet, function in zip(self._zones, self._subnets, self.functions, strict=True)
        ]

    def allow_invoke(self, role: iam.Role) -> None:
        allow(role, ["lambda:InvokeFunction"], self.arns)
