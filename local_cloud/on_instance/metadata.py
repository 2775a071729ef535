"""Which instance this is, and of which job: asked of EC2's instance metadata service, version 2."""

import json
from dataclasses import dataclass
from datetime import datetime
from urllib.error import URLError
from urllib.request import Request, urlopen

from common.cloud_names import GENERATION_TAG, JOB_TAG, PHASE_TAG, Phase
from common.errors import ClusterError

SECONDS = 5.0
TOKEN_SECONDS = "300"
IDENTITY = "dynamic/instance-identity/document"


@dataclass(frozen=True)
class Instance:
    """address: private IPv4. launched: seconds since 1970; from then on it is billed."""

    id: str
    address: str
    launched: float
    job_id: str
    generation: int
    phase: Phase


def this_instance(metadata_url: str) -> Instance:
    """Raises ClusterError if the service does not answer, or the instance has no job's tags."""
    try:
        token = _ask(metadata_url, "api/token", {"X-aws-ec2-metadata-token-ttl-seconds": TOKEN_SECONDS}, method="PUT")
        shown = {"X-aws-ec2-metadata-token": token}
        document = json.loads(_ask(metadata_url, IDENTITY, shown))
        tags = {
            tag: _ask(metadata_url, f"meta-data/tags/instance/{tag}", shown)
            for tag in (JOB_TAG, GENERATION_TAG, PHASE_TAG)
        }
    except (URLError, OSError, ValueError) as error:
        raise ClusterError(
            "this instance does not know its job",
            why=f"the metadata service at {metadata_url} says: {error}",
            fix="start it from the deployment's launch template, with the job's tags and IMDSv2",
        ) from error
    return Instance(
        id=document["instanceId"],
        address=document["privateIp"],
        launched=datetime.fromisoformat(document["pendingTime"]).timestamp(),
        job_id=tags[JOB_TAG],
        generation=int(tags[GENERATION_TAG]),
        phase=Phase(tags[PHASE_TAG]),
    )


def _ask(url: str, path: str, headers: dict[str, str], *, method: str = "GET") -> str:
    with urlopen(Request(f"{url}/latest/{path}", headers=headers, method=method), timeout=SECONDS) as answer:
        text: str = answer.read().decode()
        return text
