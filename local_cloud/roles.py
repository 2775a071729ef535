"""A role's process as the launcher sees it: started with a pipe each way, ended by closing it."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import msgspec

from common import errors
from common.allocator import MALLOC
from common.errors import ClusterError, DorylusError, PeerLost
from common.role_start import AddressBook, Ended, Leave, Listening, RoleStart, Word
from common.wire.keys import Address
from local_cloud.child import end_child

START_SECONDS = 120.0
"""Reading a large partition takes a while; the listener itself is there at once."""
END_SECONDS = 10.0
LAST_WORDS = 2000
"""Characters of a role's log that an error quotes."""


class RoleProcess:
    """`log`: where its stderr goes."""

    def __init__(self, start: RoleStart, log: Path) -> None:
        self.start, self._log = start, log
        self._process: asyncio.subprocess.Process | None = None
        self.ended: Ended | None = None

    @property
    def name(self) -> str:
        return self.start.name

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def launch(self) -> Address:
        """Returns where it listens."""
        module = "graph_server" if self.name.startswith("graph") else "parameter_server"
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, **MALLOC},
                start_new_session=True,  # a Ctrl-C at the terminal is the launcher's to answer
            )
        await self._write(self.start)
        try:
            async with asyncio.timeout(START_SECONDS):
                word = await self._next_word()
        except TimeoutError as error:
            raise PeerLost(
                f"{self.name} did not begin to listen within {START_SECONDS:.0f} s", why=self._last_words()
            ) from error
        if not isinstance(word, Listening):
            raise self.error(word)
        keys = self.start.server_keys
        return Address(word.endpoint, keys.public if keys is not None else "")

    async def introduce(self, book: AddressBook) -> None:
        await self._write(book)

    async def watch(self) -> None:
        """Returns when the role has ended well. Raises its error, or PeerLost if it had no last words."""
        word = await self._next_word()
        if not isinstance(word, Ended) or word.what:
            raise self.error(word)
        self.ended = word

    def error(self, word: Word | None) -> DorylusError:
        if isinstance(word, Ended):
            return error_of(word)
        code = self._process.returncode if self._process is not None else None
        died = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        return PeerLost(f"{self.name} {died}", why=self._last_words() or "it said nothing", fix="start the job again")

    async def end(self) -> None:
        """Close its pipe, and see that it goes."""
        if self._process is not None:
            await self._write(Leave())
        await end_child(self._process, seconds=END_SECONDS)

    async def _write(self, told: RoleStart | AddressBook | Leave) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):  # it is gone: its last words say why
            self._process.stdin.write(msgspec.json.encode(told) + b"\n")
            await self._process.stdin.drain()

    async def _next_word(self) -> Word | None:
        """None when it has ended without one."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            return None
        return msgspec.json.decode(line, type=Word)

    def _last_words(self) -> str:
        text = self._log.read_text(errors="replace")[-LAST_WORDS:].strip() if self._log.exists() else ""
        return text.splitlines()[-1] if text else ""


def error_of(word: Ended) -> DorylusError:
    """A role's last words, as the error that they were."""
    kind = getattr(errors, word.kind, ClusterError)
    return kind(word.what, word.why, word.fix) if issubclass(kind, DorylusError) else ClusterError(word.what)
