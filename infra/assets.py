"""The code that is deployed, as folders. `python -m infra.bundle` makes them; tests make small ones of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from common.errors import ClusterError
from infra.context import Architecture, Context

ARCHITECTURES: tuple[Architecture, ...] = ("arm64", "x86_64")


@dataclass(frozen=True)
class Assets:
    tensor_function: Path
    """The closure of lambda_functions.tensor_task, with its own dependencies for the functions' architecture."""
    job_trigger: Path
    """The same of lambda_functions.job_trigger, and the names of all plug-ins."""
    steps: Path
    """Code of the other functions, which need nothing beside boto3."""
    servers: Mapping[Architecture, Path]
    """boot/ and wheels/."""

    @classmethod
    def built(cls, folder: Path, context: Context) -> Self:
        """Raises ClusterError if they are not there."""
        assets = cls(
            tensor_function=folder / f"tensor-function-{context.function_architecture}",
            job_trigger=folder / f"job-trigger-{context.function_architecture}",
            steps=folder / "steps",
            servers={architecture: folder / f"servers-{architecture}" for architecture in ARCHITECTURES},
        )
        wanted = (assets.tensor_function, assets.job_trigger, assets.steps, *assets.servers.values())
        if missing := [path.name for path in wanted if not path.is_dir()]:
            raise ClusterError(
                f"nothing is built to be deployed: {', '.join(missing)} are not in {folder}",
                why="functions and servers get their code and its dependencies from there",
                fix="python -m infra.bundle",
            )
        return assets
