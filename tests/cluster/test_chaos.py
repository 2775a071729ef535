"""Bad luck of every kind at once changes no bit, and no key or token is shown anywhere while it happens.

A fifth of all leases is killed, others are throttled or start late; messages between all processes come late, twice or
not at all. On ipc and on CURVE alike.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from common.resolve_spec import ResolvedSpec
from common.role_start import Weather
from common.wire.channel import Faults as WireFaults
from common.wire.pace import Shaping
from local_cloud import restarts
from local_cloud.cluster import Cluster, ClusterOptions
from local_cloud.lambda_process import LambdaProcess
from local_cloud.lambda_service.settings import Faults
from local_cloud.summary import Summary
from local_cloud.training import RunOptions, train_job
from tests.cluster.processes import prepared, run_here
from tests.local_cloud.jobs import ROOT, Recorder, load

SETTINGS = {
    "training.num_epochs": "2",
    "cut.num_intervals": "12",
    "cluster.num_graph_servers": "2",
    "cluster.num_parameter_servers": "2",
    "backend.name": "lambda",
    "backend.lease_max_tasks": "8",
}
MODELS = {"ipc": "gat", "curve": "gcn"}
SECRET = re.compile(rb'"secret": ?"([^"]+)"')


@dataclass
class Chaos:
    summary: Summary
    weights_here: str
    secrets: set[str] = field(repr=False)
    shown: dict[str, str] = field(repr=False)
    """Everything anybody can read: where -> what."""


@pytest.fixture(scope="module", params=["ipc", "curve"])
def chaos(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    folder, wire = tmp_path_factory.mktemp("chaos"), request.param
    settings = {**SETTINGS, "model.name": MODELS[wire]}
    options = ClusterOptions(
        secure=wire == "curve",
        concurrency=6,
        faults=Faults(crash_probability=0.2, throttle_probability=0.2, cold_start_seconds=0.1, seed=5),
        weather=Weather(
            WireFaults(max_delay=0.005, loss=0.002, duplication=0.1, seed=6),
            {"lambda": Shaping(latency_seconds=0.002, bytes_per_second=75e6)},
        ),
        log_dir=folder,
    )
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        secrets = watch_secrets(patch, options)
        summary, words = run(load("cora", settings), folder, patch)
        shown = {path.name: path.read_text(errors="replace") for path in folder.rglob("*") if is_read_by_people(path)}
        plain = {**settings, "backend.name": "auto", "cluster.num_graph_servers": "1"}
        here = run_here(prepared("cora", plain, folder / "cache"))
        yield Chaos(summary, here.bits.last, secrets, {**shown, "on the terminal": words})


def run(resolved: ResolvedSpec, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Summary, str]:
    """With everything that our processes log."""
    lines = folder / "logging.log"
    handler = logging.FileHandler(lines)
    logging.getLogger().addHandler(handler)
    patch.setattr(logging.getLogger(), "level", logging.DEBUG)
    recorder = Recorder()
    try:
        options = RunOptions(ROOT, folder / "cache", run_dir=folder / "run")
        summary = train_job(resolved, options, recorder)
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
    return summary, "\n".join([repr(recorder.__dict__), repr(summary)])


def is_read_by_people(path: Path) -> bool:
    return path.is_file() and "cache" not in path.parts and path.suffix not in {".safetensors", ".parquet"}


def watch_secrets(patch: pytest.MonkeyPatch, options: ClusterOptions) -> set[str]:
    """What the launcher makes, and what graph servers put into tickets, seen on its way to the Lambda service."""
    secrets: set[str] = set()

    def watched(job, job_id, given, origin) -> Cluster:
        made = Cluster(job, job_id, replace(options, checkpoints=given.checkpoints), origin)
        secrets.update(credentials.secret for credentials in made.keys.shown.values())
        if made.keys.server is not None:
            secrets.add(made.keys.server.secret)
        return made

    launch, end, taps = LambdaProcess.launch, LambdaProcess.end, list[asyncio.Server]()

    async def launch_behind_a_tap(functions: LambdaProcess) -> None:
        await launch(functions)
        taps.append(await tap(functions.endpoint, secrets))
        functions.endpoint = f"http://127.0.0.1:{taps[0].sockets[0].getsockname()[1]}"

    async def end_with_the_tap(functions: LambdaProcess) -> None:
        taps[0].close()
        await end(functions)

    patch.setattr(restarts, "Cluster", watched)
    patch.setattr(LambdaProcess, "launch", launch_behind_a_tap)
    patch.setattr(LambdaProcess, "end", end_with_the_tap)
    return secrets


async def tap(endpoint: str, secrets: set[str]) -> asyncio.Server:
    """Another address of the same service, at which what is said is overheard."""
    host, _, port = endpoint.removeprefix("http://").partition(":")

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, overheard: bool) -> None:
        said = b""
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(65536):
                said = (said + part)[-20000:] if overheard else b""
                secrets.update(found.decode() for found in SECRET.findall(said))
                writer.write(part)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(port))
        await asyncio.gather(carry(reader, back, overheard=True), carry(there, writer, overheard=False))

    return await asyncio.start_server(serve, "127.0.0.1", 0)


def test_no_bad_luck_changes_a_bit(chaos: Chaos):
    assert chaos.summary.state == "Completed"
    assert chaos.summary.weights_sha256 == chaos.weights_here


def test_there_was_bad_luck(chaos: Chaos):
    """Else equal bits would mean little."""
    assert chaos.summary.lost_leases > 0
    assert chaos.summary.lambda_requests > chaos.summary.lost_leases


def test_no_key_and_no_token_is_shown(chaos: Chaos):
    assert len(chaos.secrets) > 5 + chaos.summary.lambda_requests / 2, "the launcher's, and one for each lease"
    leaks = [(where, secret[:4]) for secret in chaos.secrets for where, text in chaos.shown.items() if secret in text]
    assert not leaks


def test_what_is_searched_is_all_there_is_to_read(chaos: Chaos):
    logs = {"parameter0.log", "parameter1.log", "graph0.log", "graph1.log", "lambda.log"}
    results = {"trace.jsonl", "summary.json", "metrics.jsonl", "spec.yaml"}
    assert logs | results <= chaos.shown.keys()
    assert "is lost" in chaos.shown["graph0.log"] + chaos.shown["graph1.log"], "losses are logged"
    assert '"lambda"' in chaos.shown["trace.jsonl"]
