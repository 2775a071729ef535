"""Who may speak to a listener, decided without a socket.

A peer is known by its *proof* (a public key that the handshake has verified, or the digest of its token), never by its
routing id, here called *connection*. A connection belongs to the proof that said hello on it; anyone else who uses it
is refused, and its owner is not harmed. Three faults strike a peer: its proof leaves the list and its connections are
dropped unread. All tables are bounded.
"""

import enum
from dataclasses import dataclass

from common.wire.credit import Credit, Window

MAX_FAULTS = 3
MAX_CONNECTIONS = 8
"""Of one peer: a role that dials anew has a new one. The oldest is forgotten and would have to say hello again."""
MAX_STRANGERS = 4096


class Hearing(enum.Enum):
    SPEAKS = "has said hello"
    UNKNOWN = "may speak, but has not said hello"
    THIEF = "may speak, but not on this connection, which is another's"
    STRANGER = "shows nothing that is on the list"
    DROPPED = "was refused often enough"


@dataclass
class Seat:
    """One connection that has said hello."""

    name: str
    proof: str
    credit: Credit


class Admission:
    def __init__(self, window: Window | None = None) -> None:
        self.window = window or Window()
        self._names: dict[str, str] = {}
        self._seats: dict[bytes, Seat] = {}
        self._faults: dict[str, int] = {}
        self._strangers: dict[bytes, int] = {}
        self._struck: set[str] = set()

    @property
    def struck(self) -> tuple[str, ...]:
        return tuple(sorted(self._struck))

    def admit(self, name: str, proof: str) -> None:
        """From now on; what that name showed before counts no more."""
        if self._names.get(proof) != name:
            self.expel(name)
            self._names[proof] = name
        self._struck.discard(name)

    def expel(self, name: str) -> None:
        """Its lease is over. It will not be heard, on whatever connection."""
        for proof in [proof for proof, holder in self._names.items() if holder == name]:
            del self._names[proof]
            self._faults.pop(proof, None)
            for connection in self._connections(proof):
                del self._seats[connection]
                self._count_stranger(connection, MAX_FAULTS)

    def strike(self, name: str) -> None:
        self.expel(name)
        self._struck.add(name)

    def name(self, proof: str) -> str | None:
        return self._names.get(proof)

    def seat(self, connection: bytes) -> Seat | None:
        return self._seats.get(connection)

    def clear_seats(self) -> None:
        """A new listener: everyone says hello again."""
        self._seats.clear()

    def hear(self, connection: bytes, proof: str) -> Hearing:
        if proof not in self._names:
            return self._hear_stranger(connection)
        seat = self._seats.get(connection)
        if seat is None:
            return Hearing.UNKNOWN
        return Hearing.SPEAKS if seat.proof == proof else Hearing.THIEF

    def introduce(self, connection: bytes, proof: str) -> Seat:
        """After `hear` said UNKNOWN or SPEAKS. The same hello twice gives the same seat."""
        if (seat := self._seats.get(connection)) is not None:
            return seat
        for oldest in self._connections(proof)[: 1 - MAX_CONNECTIONS]:
            del self._seats[oldest]
        seat = self._seats[connection] = Seat(self._names[proof], proof, Credit(self.window))
        return seat

    def fault(self, proof: str) -> bool:
        """True if this strikes the peer."""
        name, count = self._names[proof], self._faults.get(proof, 0) + 1
        self._faults[proof] = count
        if count < MAX_FAULTS:
            return False
        self.strike(name)
        return True

    def _connections(self, proof: str) -> list[bytes]:
        return [connection for connection, seat in self._seats.items() if seat.proof == proof]

    def _hear_stranger(self, connection: bytes) -> Hearing:
        count = self._strangers.get(connection, 0)
        if count >= MAX_FAULTS:
            return Hearing.DROPPED
        self._count_stranger(connection, count + 1)
        return Hearing.STRANGER

    def _count_stranger(self, connection: bytes, count: int) -> None:
        self._strangers[connection] = count
        if len(self._strangers) > MAX_STRANGERS:
            del self._strangers[next(iter(self._strangers))]
