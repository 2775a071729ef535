"""The local Lambda service as the launcher starts it: its own process, ended by closing its stdin."""

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from common.allocator import MALLOC
from common.errors import ClusterError, PeerLost
from local_cloud.child import end_child
from local_cloud.lambda_service.settings import Faults, FunctionConfig, ServiceConfig

FUNCTION = "dorylus-tensor-task"
HANDLER = "lambda_functions.tensor_task.handler"
REGION = "us-east-1"
LOCAL_CONCURRENCY = 16
"""By default: what one machine can bear."""
START_SECONDS = 30.0
INIT_SECONDS = 60.0
END_SECONDS = 15.0


def concurrency_of_each(concurrency: int, num_graph_servers: int) -> int:
    """What a graph server may have in flight."""
    return max(1, concurrency // num_graph_servers)


class LambdaProcess:
    """`folder` takes its settings, `log` its stderr. `concurrency` as the account's; `memory_mb`, `seconds` of the
    function."""

    def __init__(
        self, folder: Path, log: Path, *, memory_mb: int, seconds: float, concurrency: int, faults: Faults
    ) -> None:
        function = FunctionConfig(
            name=FUNCTION,
            handler=HANDLER,
            task_root=str(Path(__file__).resolve().parents[1]),
            memory_mb=memory_mb,
            timeout_seconds=seconds,
            environment=dict(MALLOC),
        )
        # Its many functions share few cores: a start may take longer than the 10 s that AWS grants.
        self._config = ServiceConfig(
            functions=(function,), concurrency=concurrency, faults=faults, init_seconds=INIT_SECONDS
        )
        self._folder, self._log = folder, log
        self._process: asyncio.subprocess.Process | None = None
        self.endpoint = ""

    async def launch(self) -> None:
        path = self._folder / "lambda.json"
        path.write_bytes(msgspec.json.encode(self._config))
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "local_cloud.lambda_service", "--config", str(path),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip
        assert self._process.stdout is not None
        port = ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                port = (await self._process.stdout.readline()).decode().strip()
        if not port:
            raise ClusterError(
                "the local Lambda service did not start",
                why=self._log.read_text(errors="replace")[-500:],
            )
        self.endpoint = f"http://127.0.0.1:{port}"

    async def watch(self) -> None:
        """Raises PeerLost when it ends: nobody else ends it while a job runs."""
        assert self._process is not None
        code = await self._process.wait()
        raise PeerLost(f"the local Lambda service ended with exit code {code}", fix="start the job again")

    async def meter(self) -> dict[str, float]:
        found: dict[str, float] = await self._ask("_meter?records=0")
        return found

    async def open_leases(self) -> int:
        """Invocations that run now, which the meter does not know yet."""
        return sum(not worker["idle"] for worker in await self._ask("_workers"))

    async def _ask(self, what: str) -> Any:
        async with aiohttp.ClientSession() as session, session.get(f"{self.endpoint}/{what}") as response:
            return json.loads(await response.read())

    async def end(self) -> None:
        await end_child(self._process, seconds=END_SECONDS)
