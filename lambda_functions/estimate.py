"""A budget against the lower end of what training can cost, before there are servers. Pure.

The rates are those of `dorylus plan`: assumed, with a range, and nothing was measured on the instance types.
"""

from common.errors import SpecError
from common.instances import instance
from common.job_setup import derive_programs
from common.job_spec import JobSpec
from common.price_table import US_EAST_1, PriceTable
from common.pricing import MB_PER_GB, MIN_SERVER_SECONDS, spot_share
from common.saga.epoch_work import FULL_VCPU_MB, WITHIN, Sizes, cores, epoch_work, shares


def least_usd(spec: JobSpec, sizes: Sizes, prices: PriceTable = US_EAST_1) -> float:
    """The lower end of what training can cost: all tensor work on the servers or, where there are functions, on these.

    Boot, load, evaluations and the cut come on top, so a budget below this one is certainly too small, as far as the
    rates above are right. A job that may end early is taken to end after its first epoch.
    """
    widths = {"num_features": sizes.num_features, "num_classes": sizes.num_classes}
    work = epoch_work(derive_programs(spec, **widths, task=sizes.task), sizes)
    box, each = instance(spec.cluster.instance_type, prices), shares(work)
    num_cores = cores(work, box.vcpus, spec.cluster.num_graph_servers)
    hour = box.usd_hour * (spot_share(prices)[0] if spec.cluster.spot else 1.0)
    second = hour / 3600 * (spec.cluster.num_graph_servers + spec.cluster.num_parameter_servers)
    num_epochs = epochs_at_least(spec)

    def servers(epoch_seconds: float) -> float:
        return second * max(MIN_SERVER_SECONDS, num_epochs * epoch_seconds / num_cores / WITHIN)

    alone = servers(each.tensor + each.graph)
    if spec.backend.name == "local_cpu":
        return alone
    core_second = FULL_VCPU_MB / MB_PER_GB * min(prices.lambda_gb_second.values())
    return min(alone, servers(each.graph) + num_epochs * each.tensor / WITHIN * core_second)


def epochs_at_least(spec: JobSpec) -> int:
    training = spec.training
    return 1 if training.use_early_stop or training.target_metric is not None else training.num_epochs


def check_budget(spec: JobSpec, sizes: Sizes, cap: float, prices: PriceTable = US_EAST_1) -> None:
    """Raises SpecError if the lower end of the estimate is above `cap`."""
    least = least_usd(spec, sizes, prices)
    if least > cap:
        cluster, num_epochs = spec.cluster, epochs_at_least(spec)
        servers = cluster.num_graph_servers + cluster.num_parameter_servers
        raise SpecError(
            f"the budget is ${cap:g}",
            why=f"{num_epochs} epoch{'' if num_epochs == 1 else 's'} on {servers} x {cluster.instance_type} are "
            f"estimated at ${least:.2f} at the least, and rather at {WITHIN:g} times that",
            fix="raise budget.max_cost_usd, train fewer epochs, or see what dorylus plan says of other servers",
        )
