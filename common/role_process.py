"""What every role's process does alike: read its start from the pipe, say where it listens, end with its parent."""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable

import msgspec
import numpy as np
from threadpoolctl import threadpool_info

from common.errors import DorylusError
from common.role_start import AddressBook, Ended, RoleStart, Word


def say(word: Word) -> None:
    """To the launcher."""
    os.write(sys.stdout.fileno(), msgspec.json.encode(word) + b"\n")


def read_start() -> RoleStart:
    return msgspec.json.decode(sys.stdin.buffer.readline(), type=RoleStart)


async def read_book() -> AddressBook:
    line = await asyncio.to_thread(sys.stdin.buffer.readline)
    return msgspec.json.decode(line, type=AddressBook)


def end_with_parent() -> None:
    """The launcher holds the pipe's other end: when it is gone, however it went, so is this process."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        os._exit(0)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def run_role(main: Callable[[RoleStart], Awaitable[None]]) -> int:
    """Exit code: 0, or 1 after an error, which the launcher hears of as Ended."""
    start = read_start()
    try:
        asyncio.run(_as_coroutine(main, start))
    except BaseException as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if not isinstance(error, DorylusError):
            say(Ended(f"{start.name} failed with {type(error).__name__}: {error}", kind=type(error).__name__))
            raise
        say(Ended(error.what, error.why, error.fix, type(error).__name__))
        return 1
    say(Ended())
    return 0


async def _as_coroutine(main: Callable[[RoleStart], Awaitable[None]], start: RoleStart) -> None:
    await main(start)


def kernel_names() -> str:
    """What decides the last bits of a product: the BLAS kernels, and NumPy's own for this CPU."""
    blas = {str(found.get("architecture", found["internal_api"])) for found in threadpool_info()}
    features = [name for name, there in np._core._multiarray_umath.__cpu_features__.items() if there]  # type: ignore[attr-defined]
    return f"blas {' '.join(sorted(blas))}; numpy {' '.join(sorted(features))}"


def peak_memory_bytes() -> int:
    """Proportional set size now, where the system tells; else the largest resident set so far."""
    try:
        with open("/proc/self/smaps_rollup", "rb") as rollup:
            for line in rollup:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
