"""The servers of a generation as one of them sees the others: who is there, where they listen, who is lost."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from common.errors import PeerLost
from common.role_start import AddressBook
from common.wire.keys import Address
from local_cloud.in_process import LAUNCHER
from local_cloud.on_instance.members import LOST_SECONDS, Member, Members
from local_cloud.roles import error_of

LOG = logging.getLogger(__name__)
LEADER = "parameter0"
"""Its instance follows the job, and tells of it."""
LOOK_SECONDS = 1.0
FORM_SECONDS = 900.0
"""All instances of a fleet have booted by then. Whoever is there takes as long as its data takes, while it beats."""


class Team:
    """`names`: of all its roles."""

    def __init__(self, members: Members, me: str, names: Sequence[str]) -> None:
        self.members, self.me, self._names = members, me, tuple(names)

    async def everybody(self) -> dict[str, Member]:
        """As soon as every role is taken. Raises PeerLost if that does not come about."""
        try:
            async with asyncio.timeout(FORM_SECONDS):
                return await self._until(lambda rows: len(rows) == len(self._names))
        except TimeoutError:
            there = await self.rows()
            missing = [name for name in self._names if name not in there]
            raise PeerLost(
                f"{', '.join(missing)} did not come within {FORM_SECONDS:.0f} s",
                why=f"{len(there)} of {len(self._names)} instances have started",
                fix="look into the boot logs of the others",
            ) from None

    async def checkpoint(self) -> str | None:
        """URL of the one that this generation goes on from, as its leader says."""
        rows = await self._until(lambda rows: rows[LEADER].checkpoint is not None)
        return rows[LEADER].checkpoint or None

    async def addresses(self, server_key: str) -> AddressBook:
        """As soon as all roles listen."""
        rows = await self._until(lambda rows: all(row.address for row in rows.values()))
        return AddressBook({name: Address(row.endpoint, server_key) for name, row in rows.items()})

    async def watch(self, leaves: Callable[[str], None]) -> None:
        """The others, for the leader. `leaves`: is told who will be taken away.

        Raises what one of them has ended with, and PeerLost if one is silent.
        """
        while True:
            rows = await self._looked_at()
            for name, row in rows.items():
                if row.is_leaving:
                    leaves(name)
            await asyncio.sleep(LOOK_SECONDS)

    async def until_done(self) -> None:
        """The leader has ended the job. Raises PeerLost if it has not been heard of."""
        while not (row := (await self.rows())[LEADER]).is_done:
            if row.silent_seconds > LOST_SECONDS:
                raise _silent(row)
            await asyncio.sleep(LOOK_SECONDS)

    async def until_handed_in(self, seconds: float) -> None:
        """All others are gone, or will not go in good order any more."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    rows = await self.rows()
                    if not any(self._is_waited_for(row) for row in rows.values()):
                        return
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            LOG.warning("not all servers have handed in their traces within %.0f s", seconds)

    async def rows(self) -> dict[str, Member]:
        return await asyncio.to_thread(self.members.rows)

    def proofs(self, rows: Mapping[str, Member]) -> dict[str, str]:
        """Name -> public key, of everybody who may speak."""
        return {name: row.public_key for name, row in rows.items()} | {LAUNCHER: rows[LEADER].launcher_key}

    def _is_waited_for(self, row: Member) -> bool:
        is_gone = row.is_done or row.ended is not None or row.silent_seconds > LOST_SECONDS
        return row.name != self.me and not is_gone

    async def _until(self, is_so: Callable[[dict[str, Member]], bool]) -> dict[str, Member]:
        while True:
            rows = await self._looked_at()
            if is_so(rows):
                return rows
            await asyncio.sleep(LOOK_SECONDS)

    async def _looked_at(self) -> dict[str, Member]:
        rows = await self.rows()
        for row in rows.values():
            if row.name == self.me:
                continue
            if row.name == LEADER and row.is_done:
                raise PeerLost("the generation has ended before it began", why=f"{LEADER} has said so")
            if row.ended is not None:
                raise error_of(row.ended)
            if row.silent_seconds > LOST_SECONDS:
                raise _silent(row)
        return rows


def _silent(row: Member) -> PeerLost:
    return PeerLost(
        f"{row.name} has not been heard of for {row.silent_seconds:.0f} s",
        why=f"instance {row.instance} is gone, or hangs",
        fix="the job goes on from its last checkpoint, by itself",
    )
