"""The deployer's choices: coerced, checked, and a misspelt one is refused."""

import pytest

from common.errors import SpecError
from infra.context import Context


def test_text_of_the_command_line_is_coerced():
    context = Context.read({"dorylus:zones": "2", "dorylus:dashboard": "false", "dorylus:dearest_job_usd": "7.5"})
    assert (context.zones, context.dashboard, context.limits.dearest_job_usd) == (2, False, 7.5)


def test_lists_are_text_with_commas_or_lists():
    assert Context.read({"dorylus:instance_types": "c7g.*, c8g.*"}).limits.instance_types == ("c7g.*", "c8g.*")
    assert Context.read({"dorylus:dataset_buckets": ["a", "b"]}).limits.dataset_buckets == ("a", "b")


def test_the_cdks_own_keys_are_left_alone():
    assert Context.read({"@aws-cdk/core:newStyleStackSynthesis": True, "aws:cdk:x": 1}) == Context()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dorylus:zone": 2}, "dorylus:zone is not known: did you mean dorylus:zones?"),
        ({"dorylus:zones": "many"}, "dorylus:zones: "),
        ({"dorylus:zones": 7}, "dorylus:zones: "),
        ({"dorylus:endpoints": "public"}, "dorylus:endpoints: Input should be 'egress' or 'private'"),
        ({"dorylus:name": "Has Spaces"}, "dorylus:name: "),
        ({"dorylus:log_days": 8}, "must be one of 1, 3, 5, 7"),
        ({"dorylus:notify_email": "nobody"}, "must be an e-mail address"),
        ({"dorylus:most_servers": 0}, "dorylus:most_servers: "),
    ],
)
def test_what_is_wrong_is_said(values, words):
    with pytest.raises(SpecError) as error:
        Context.read(values)
    assert words in str(error.value)
