"""An uploaded spec against the schema and the deployment's guard rails: all that can be said before AWS is asked.

The schema is the one of a job on one machine.
"""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass

from common.cloud_names import RUNS
from common.errors import SpecError
from common.job_spec import JobSpec, job_name_from
from common.resolve_spec import Layer, ResolvedSpec, refuse_unbuilt, resolve
from common.spec_file import SUFFIXES, parse
from lambda_functions.known_names import known_names
from lambda_functions.stack_settings import Limits

MAX_BYTES = 100_000
"""A job's record has to hold its spec."""
BUILT_HERE = frozenset({"dataset.path", "cluster.spot", "output.path"})
NAMED = {"model.name": "model", "dataset.format": "format", "backend.name": "backend"}
WORDS = frozenset({"auto", "lambda"})
"""Values that stand for no file of their own name."""


@dataclass(frozen=True)
class JobRequest:
    spec: JobSpec
    notes: tuple[str, ...]
    limits: Limits

    @property
    def num_servers(self) -> int:
        return self.spec.cluster.num_graph_servers + self.spec.cluster.num_parameter_servers

    @property
    def uses_functions(self) -> bool:
        """auto is hybrid on AWS."""
        return self.spec.backend.name != "local_cpu"

    @property
    def seconds(self) -> int:
        return self.spec.budget.max_runtime_seconds or self.limits.longest_job_hours * 3600

    @property
    def most_usd(self) -> float:
        return self.spec.budget.max_cost_usd or self.limits.dearest_job_usd

    @property
    def num_lambdas(self) -> int:
        return min(self.spec.backend.max_lambdas, self.limits.most_lambdas)


def read_request(text: str, file_name: str, bucket: str, limits: Limits) -> JobRequest:
    """Raises SpecError with everything that is wrong, in the order it was looked at."""
    resolved = resolve_request(text, file_name)
    spec = resolved.spec
    _check_names({key: str(resolved.value(key)) for key in NAMED})
    _check_output(spec, bucket)
    _check_limits(spec, limits)
    return JobRequest(spec, resolved.notes, limits)


def resolve_request(text: str, file_name: str) -> ResolvedSpec:
    """What the text alone says; no deployment is asked. Raises SpecError."""
    if not file_name.lower().endswith(SUFFIXES):
        raise SpecError(
            f"{file_name} is no job spec",
            why=f"a job spec's name ends in {', '.join(SUFFIXES)}",
            fix="datasets belong under datasets/",
        )
    values, lines = parse(text, file_name)
    named = Layer("the file's name", {"name": job_name_from(file_name.rpartition(".")[0])}, is_default=True)
    resolved = resolve([named, Layer(file_name, values, lines)])
    refuse_unbuilt(resolved, built=BUILT_HERE)
    return resolved


def _check_names(asked: Mapping[str, str]) -> None:
    for key, name in asked.items():
        known = known_names(NAMED[key])
        if name not in known and name not in WORDS:
            raise SpecError(f"{key} = {name} is not known", why=f"there are: {', '.join(known)}", fix="use one of them")


def _check_output(spec: JobSpec, bucket: str) -> None:
    ours = f"s3://{bucket}/{RUNS}"
    if "path" in spec.output.model_fields_set and spec.output.path.rstrip("/") not in {ours.rstrip("/"), "runs"}:
        raise SpecError(
            f"output.path = {spec.output.path}",
            why="the servers may write to run folders of this deployment's bucket only",
            fix=f"remove it; results go to {ours}<job_id>/",
        )


def _check_limits(spec: JobSpec, limits: Limits) -> None:
    """Whoever may upload spends money: the deployer says how much."""
    cluster, backend, budget = spec.cluster, spec.backend, spec.budget
    servers = cluster.num_graph_servers + cluster.num_parameter_servers
    if not any(fnmatch.fnmatchcase(cluster.instance_type, pattern) for pattern in limits.instance_types):
        allowed = ", ".join(limits.instance_types)
        raise _limit(f"cluster.instance_type = {cluster.instance_type}", f"allowed are {allowed}", "instance_types")
    if servers > limits.most_servers:
        raise _limit(f"{servers} servers", f"a job may have {limits.most_servers}", "most_servers")
    if "max_lambdas" in backend.model_fields_set and backend.max_lambdas > limits.most_lambdas:
        said = f"backend.max_lambdas = {backend.max_lambdas}"
        raise _limit(said, f"a job may have {limits.most_lambdas}", "most_lambdas")
    if (budget.max_cost_usd or 0) > limits.dearest_job_usd:
        said = f"budget.max_cost_usd = {budget.max_cost_usd:g}"
        raise _limit(said, f"a job may cost {limits.dearest_job_usd:g}", "dearest_job_usd")
    if (budget.max_runtime_seconds or 0) > limits.longest_job_hours * 3600:
        said = f"budget.max_runtime_seconds = {budget.max_runtime_seconds}"
        raise _limit(said, f"a job may run {limits.longest_job_hours} hours", "longest_job_hours")
    if "memory_mb" in backend.model_fields_set and backend.memory_mb != limits.function_memory_mb:
        said = f"backend.memory_mb = {backend.memory_mb}"
        raise _limit(said, f"the functions are deployed with {limits.function_memory_mb}", "function_memory_mb")


def _limit(what: str, why: str, key: str) -> SpecError:
    return SpecError(f"{what}: this deployment does not allow it", why=why, fix=f"cdk deploy -c dorylus:{key}=...")
