"""One key pair per job, whoever asks first."""

from concurrent.futures import ThreadPoolExecutor

import boto3

from local_cloud.on_instance.job_keys import server_keys

NAME = "/small/jobs/job-1/keys"


def test_all_get_the_same_pair_and_it_is_kept_encrypted(aws):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: server_keys(aws, NAME), range(4)))
    assert len({(pair.public, pair.secret) for pair in found}) == 1
    (parameter,) = boto3.client("ssm").describe_parameters()["Parameters"]
    assert (parameter["Name"], parameter["Type"]) == (NAME, "SecureString")


def test_another_job_has_another_pair(aws):
    assert server_keys(aws, NAME) != server_keys(aws, NAME.replace("job-1", "job-2"))
