"""What an instance is told by its environment: read once, frozen. docs/deploy/contract.md lists the variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.cloud_names import SERVER_PORT
from common.price_table import Architecture

METADATA = "http://169.254.169.254"
WORK = "/var/lib/dorylus"


@dataclass(frozen=True)
class Settings:
    """port: 0 for any that is free. lambda_endpoint: of another Lambda than AWS's. work: a folder for what is fetched
    and made here. disk_gb: of each server; endpoints: private ones, each counted in each of its zones; functions: their
    architecture."""

    stack: str
    bucket: str
    jobs_table: str
    members_table: str
    region: str
    port: int
    metadata_url: str
    lambda_endpoint: str | None
    work: Path
    disk_gb: int
    endpoints: int
    functions: Architecture

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        return cls(
            stack=environment["DORYLUS_STACK"],
            bucket=environment["DORYLUS_BUCKET"],
            jobs_table=environment["DORYLUS_JOBS_TABLE"],
            members_table=environment["DORYLUS_MEMBERS_TABLE"],
            region=environment["AWS_DEFAULT_REGION"],
            port=int(environment.get("DORYLUS_PORT", SERVER_PORT)),
            metadata_url=environment.get("DORYLUS_METADATA_URL", METADATA),
            lambda_endpoint=environment.get("DORYLUS_LAMBDA_ENDPOINT"),
            work=Path(environment.get("DORYLUS_WORK", WORK)),
            disk_gb=int(environment["DORYLUS_DISK_GB"]),
            endpoints=int(environment["DORYLUS_PRIVATE_ENDPOINTS"]),
            functions="arm64" if environment["DORYLUS_FUNCTION_ARCHITECTURE"] == "arm64" else "x86_64",
        )
