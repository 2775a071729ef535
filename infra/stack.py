"""The whole application in one stack: which parts there are, and what each is told of the others."""

from aws_cdk import CfnElement, CfnOutput, Stack
from constructs import Construct

from infra.assets import Assets
from infra.context import Context
from infra.job_functions import JobFunctions
from infra.job_trigger import JobTrigger
from infra.monitoring import Monitoring, Notices
from infra.network import Network
from infra.orchestration import Orchestration, Parts
from infra.servers import Servers
from infra.storage import Storage
from infra.sweeper import Sweeper
from infra.tensor_function import TensorFunctions


class DorylusStack(Stack):
    """Names no account and no region: it can be deployed into any."""

    def __init__(self, scope: Construct, context: Context, assets: Assets) -> None:
        super().__init__(scope, context.name, description="Dorylus: graph neural networks on the whole graph")
        self.context = context
        network = Network(self, context)
        storage = Storage(self, context)
        self._bucket = storage.bucket.node.default_child
        notices = Notices(self, context)
        tensor = TensorFunctions(self, context, network, assets.tensor_function)
        servers = Servers(self, context, network, storage, assets.servers)
        tensor.allow_invoke(servers.role)
        functions = JobFunctions(context, storage, notices.topic)
        sweeper = Sweeper(self, functions, assets.steps)
        parts = Parts(network, servers, tensor, sweeper)
        orchestration = Orchestration(self, functions, parts, assets.steps)
        trigger = JobTrigger(self, functions, tensor, code=assets.job_trigger, step_code=assets.steps)
        helpers = (trigger.trigger, trigger.stop, orchestration.launch, orchestration.collect, sweeper.sweep)
        Monitoring(
            self,
            context,
            orchestration.machine,
            tensor=tensor.functions,
            helpers=[helper.function for helper in helpers],
            topic=notices.topic,
        )
        self._outputs(storage, orchestration)
        self._costs(network)

    @property
    def bucket_in_findings(self) -> str:
        """As the rules' findings write its ARN."""
        assert isinstance(self._bucket, CfnElement)
        return f"<{self.get_logical_id(self._bucket)}.Arn>"

    def _outputs(self, storage: Storage, orchestration: Orchestration) -> None:
        """What the command line looks up."""
        CfnOutput(self, "Bucket", value=storage.bucket.bucket_name)
        CfnOutput(self, "JobsTable", value=storage.jobs.table_name)
        CfnOutput(self, "StateMachine", value=orchestration.machine.state_machine_arn)

    def _costs(self, network: Network) -> None:
        """What is billed of the deployer's choices."""
        CfnOutput(self, "PrivateEndpoints", value=str(network.private_endpoints))
        CfnOutput(self, "FunctionArchitecture", value=self.context.function_architecture)
