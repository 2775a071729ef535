"""An instance asks who it is, in version 2 of the service; one without a job says so."""

import pytest

from common.cloud_names import Phase
from common.errors import ClusterError
from local_cloud.on_instance.metadata import this_instance
from tests.integration.metadata_service import metadata_service

TAGS = {"dorylus-job": "job-1", "dorylus-generation": "2", "dorylus-phase": "train"}


def test_what_it_is_for():
    with metadata_service("i-7", TAGS) as url:
        found = this_instance(url)
    assert (found.id, found.address, found.job_id, found.generation) == ("i-7", "127.0.0.1", "job-1", 2)
    assert found.phase is Phase.TRAIN
    assert found.launched > 1_700_000_000


def test_without_tags_or_service():
    with metadata_service("i-7", {}) as url, pytest.raises(ClusterError, match="does not know its job"):
        this_instance(url)
    with pytest.raises(ClusterError, match="does not know its job"):
        this_instance("http://127.0.0.1:9")
