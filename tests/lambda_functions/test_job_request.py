"""A spec against the schema and the guard rails: nothing of AWS is asked."""

import pytest

from common.errors import SpecError
from tests.lambda_functions.job_cloud import SPEC, request


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dataset: cora\nmodel: gpt\n", "gpt"),
        ("dataset: {path: cora, format: excel}\n", "dataset.format = excel is not known"),
        ("dataset: cora\noutput: {path: s3://elsewhere/}\n", "write to run folders of this deployment's bucket only"),
        ("dataset: cora\ncluster: {instance_type: p5.48xlarge}\n", "allowed are c7g.*, c7i.*"),
        ("dataset: cora\ncluster: {num_graph_servers: 9}\n", "a job may have 8"),
        ("dataset: cora\nbackend: {max_lambdas: 500}\n", "a job may have 200"),
        ("dataset: cora\nbackend: {memory_mb: 3008}\n", "the functions are deployed with 1769"),
        ("dataset: cora\nbudget: {max_cost_usd: 100}\n", "a job may cost 20"),
        ("dataset: cora\nbudget: {max_runtime_seconds: 999999}\n", "a job may run 48 hours"),
        ("dataset: cora\ntraining: {precision: mixed, deterministic: true}\n", "not in this version"),
        ("[1, 2]", "the top level is a list"),
        ("dataset: cora\nbudget: {max_cost_usd: 20.5}\n", "cdk deploy -c dorylus:dearest_job_usd="),
    ],
)
def test_what_is_not_allowed_is_said(text, words):
    with pytest.raises(SpecError) as error:
        request(text)
    assert words in str(error.value)


def test_where_a_spec_is_silent_the_deployment_decides():
    asked = request(SPEC)
    assert (asked.seconds, asked.most_usd, asked.num_lambdas) == (48 * 3600, 20.0, 100)
    assert asked.num_servers == 2
    assert asked.uses_functions


def test_what_a_spec_says_holds():
    asked = request(f"{SPEC}budget: {{max_cost_usd: 3, max_runtime_seconds: 600}}\nbackend: {{name: local_cpu}}\n")
    assert (asked.seconds, asked.most_usd) == (600, 3.0)
    assert not asked.uses_functions


def test_spot_and_s3_are_of_the_cloud():
    spec = request("dataset: s3://small-bucket/datasets/x\ncluster: {spot: true}\noutput: {path: runs/}\n").spec
    assert spec.cluster.spot


def test_the_name_is_the_files_unless_it_is_given():
    assert request(SPEC).spec.name == "first"
    assert request(f"{SPEC}name: mine\n").spec.name == "mine"
