"""`python -m local_cloud.lambda_service --config FILE [--port-fd N]`: the service as its own process.

Writes its port and a line end to descriptor N (else to stdout) as soon as it answers there, and ends when its stdin
does: whoever started it holds the other end of that pipe. SIGTERM ends it too; Ctrl-C only at a terminal, for whoever
started it gets the same signal and decides.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from common.errors import DorylusError, SpecError
from local_cloud.lambda_service.service import serving
from local_cloud.lambda_service.settings import ServiceConfig, read_config


async def run(config: ServiceConfig, *, port_fd: int) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, stop.set if sys.stdin.isatty() else lambda: None)
    _watch_stdin(stop)
    async with serving(config) as service:
        os.write(port_fd, f"{service.port}\n".encode())
        if port_fd > 2:
            os.close(port_fd)
        await stop.wait()


def _watch_stdin(stop: asyncio.Event) -> None:
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()

    def look() -> None:
        if not os.read(stdin, 4096):
            loop.remove_reader(stdin)
            stop.set()

    try:
        loop.add_reader(stdin, look)
    except PermissionError as error:
        raise SpecError(
            "stdin is a file",
            why="the local Lambda service ends when its stdin does, so that it never outlives who started it",
            fix="give it a pipe, or start it from a terminal",
        ) from error


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m local_cloud.lambda_service", description="The local Lambda service."
    )
    parser.add_argument("--config", type=Path, required=True, help="JSON file: functions, limits, faults")
    parser.add_argument("--port-fd", type=int, default=1, help="descriptor to write the port to (default: stdout)")
    arguments = parser.parse_args()
    try:
        asyncio.run(run(read_config(arguments.config), port_fd=arguments.port_fd))
    except DorylusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
