"""The deployment that the tests of the job's machinery share."""

from collections.abc import Iterator

import pytest

from tests.lambda_functions.job_cloud import JobCloud, job_cloud


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobCloud]:
    with job_cloud(monkeypatch) as made:
        yield made
