"""Is a role's policy least? What is asked is allowed; what is allowed is asked, or it is said why it is not."""

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

from tests.infra.calls import Call
from tests.infra.deployed import Deployed
from tests.infra.iam_requests import requests_of
from tests.infra.policy import Policy, Request


def asked(deployed: Deployed, calls: Collection[Call]) -> list[Request]:
    return [request for call in calls for request in requests_of(call, deployed)]


def check(policy: Policy, requests: list[Request], never_called: Mapping[str, str], *, all_of_it: bool = True) -> None:
    """never_called: pattern of grants -> why nobody is seen to need them. Each statement that is used is also needed:
    without it something is refused.

    all_of_it: everything that is ever called is here, so that a reason for a grant that is called is out of date
    """
    done = policy.replay(requests)
    assert done.refused == [], "called and not allowed"
    idle = policy.grants - done.used
    unsaid = {grant for grant in idle if not any(fnmatchcase(grant, one) for one in never_called)}
    assert unsaid == set(), "allowed and never called"
    known = idle if all_of_it else policy.grants
    stale = [one for one in never_called if not any(fnmatchcase(grant, one) for grant in known)]
    assert stale == [], "called, or not allowed any more"
    for statement in policy.statements:
        if statement.effect == "Allow" and statement.grants & done.used:
            assert policy.without(statement).replay(requests).refused, f"nothing needs {statement}"
