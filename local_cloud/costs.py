"""What a run would have cost on AWS: the meter's figures, at the price table's prices."""

from common.job_spec import JobSpec
from common.pricing import Cost, Usage, price
from local_cloud.run_result import Totals


def run_cost(spec: JobSpec, totals: Totals, seconds: float) -> Cost:
    """`seconds`: how long the servers would have run."""
    cluster = spec.cluster
    servers = {
        "graph server": [seconds] * cluster.num_graph_servers,
        "parameter server": [seconds] * cluster.num_parameter_servers,
    }
    usage = Usage(servers, lambda_gb_seconds=totals.lambda_gb_seconds, lambda_requests=totals.lambda_requests)
    return price(usage, instance_type=cluster.instance_type, spot=cluster.spot)
