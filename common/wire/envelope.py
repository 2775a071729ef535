"""The first frame of every message: its kind, the sender's token, the number of the request.

peer -> listener    HELLO    first; answered with REPLY: Welcome, Superseded or Refused
                    REQUEST  header and buffers follow
                    PROBE    what has become of this request?
listener -> peer    REPLY    header and buffers follow
                    WORKING  the request is here; its reply will come
                    LOST     the request is not here: it never came, or its reply was lost; send it again
                    UNKNOWN  say hello first: the listener is new, or has forgotten you

A reply bears no token; over CURVE the token of a request is all zeros.
"""

import enum
import struct
from dataclasses import dataclass

from common.wire.keys import TOKEN_BYTES

_LAYOUT = struct.Struct(f">B{TOKEN_BYTES}sQ")
NO_TOKEN = bytes(TOKEN_BYTES)


class Kind(enum.IntEnum):
    HELLO = 1
    REQUEST = 2
    PROBE = 3
    REPLY = 4
    WORKING = 5
    LOST = 6
    UNKNOWN = 7


_KINDS = {kind.value: kind for kind in Kind}


@dataclass(frozen=True)
class Envelope:
    kind: Kind
    token: bytes
    number: int

    def __repr__(self) -> str:
        return f"Envelope({self.kind.name}, {self.number})"


def seal(kind: Kind, number: int, token: bytes = NO_TOKEN) -> bytes:
    return _LAYOUT.pack(kind, token, number)


def unseal(frame: bytes | memoryview) -> Envelope | None:
    """None if it is no envelope."""
    if len(frame) != _LAYOUT.size:
        return None
    kind, token, number = _LAYOUT.unpack(frame)
    return Envelope(_KINDS[kind], token, number) if kind in _KINDS else None
