"""What every role's process does alike: read its start from the pipe, say where it listens, end with its parent."""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable

import msgspec

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
