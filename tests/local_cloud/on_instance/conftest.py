"""A bucket, the two tables and the key store of a deployment, in this process."""

from collections.abc import Callable, Iterator

import pytest

from common.cloud_names import Phase
from local_cloud.on_instance.aws import Aws
from local_cloud.on_instance.metadata import Instance
from tests.lambda_functions.job_cloud import JobCloud, job_cloud

NewInstance = Callable[..., Instance]


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobCloud]:
    with job_cloud(monkeypatch) as made:
        yield made


@pytest.fixture
def aws(cloud: JobCloud) -> Aws:
    return Aws.connect("us-east-1")


@pytest.fixture
def instance() -> NewInstance:
    def made(id: str = "i-1", *, generation: int = 1, phase: Phase = Phase.TRAIN) -> Instance:
        return Instance(id, "10.0.0.1", 1000.0, "job-1", generation, phase)

    return made
