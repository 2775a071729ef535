"""What every role's process does alike: read its start from the pipe, say where it listens, end with its parent."""

import asyncio
import io
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from typing import NoReturn

import msgspec

from common.errors import DorylusError, first_error
from common.role_start import AddressBook, Ended, Leave, RoleStart, Word


def say(word: Word) -> None:
    """To the launcher."""
    os.write(sys.stdout.fileno(), msgspec.json.encode(word) + b"\n")


def _line() -> bytes:
    # Unbuffered: what follows the line is left in the pipe, and no lock is held while waiting.
    return io.FileIO(sys.stdin.fileno(), closefd=False).readline()


def read_start() -> RoleStart:
    return msgspec.json.decode(_line(), type=RoleStart)


async def read_book(start: RoleStart) -> AddressBook:
    line = await asyncio.to_thread(_line)
    book = msgspec.json.decode(line, type=AddressBook | Leave) if line else None
    if not isinstance(book, AddressBook):
        _leave(start, in_order=book is not None)
    return book


def end_with_parent(start: RoleStart) -> None:
    """The launcher holds the pipe's other end: when it is gone, however it went, so is this process."""

    def watch() -> None:
        _leave(start, in_order=bool(_line()))

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _leave(start: RoleStart, *, in_order: bool) -> NoReturn:
    if not in_order:
        shutil.rmtree(start.scratch, ignore_errors=True)
    os._exit(0)


def run_role(main: Callable[[RoleStart], Awaitable[None]]) -> int:
    """Exit code: 0, or 1 after an error, which the launcher hears of as Ended."""
    start = read_start()
    try:
        asyncio.run(_as_coroutine(main, start))
    except BaseException as group:
        error = first_error(group)
        if not isinstance(error, DorylusError):
            where = "".join(traceback.format_tb(error.__traceback__)[-1:]).strip()
            say(Ended(f"{start.name} failed with {type(error).__name__}: {error}", where, kind=type(error).__name__))
            raise
        say(Ended(error.what, error.why, error.fix, type(error).__name__))
        return 1
    say(Ended())
    return 0


async def _as_coroutine(main: Callable[[RoleStart], Awaitable[None]], start: RoleStart) -> None:
    await main(start)
