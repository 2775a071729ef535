"""Keys and tokens, with a `repr` that shows neither.

CURVE over TCP: every peer has a key pair, and a listener knows the public halves. ipc: every peer has a token. What a
listener keeps of a peer, and what may travel in a message, is its *proof*: the public half, or a digest of the token.
All are msgspec structs, so that a ticket or a pipe can carry them.
"""

import hashlib
import secrets
from typing import Any

import msgspec
import zmq

TOKEN_BYTES = 16


class Hidden(msgspec.Struct, frozen=True):
    """A struct that names itself and nothing else, wherever it is shown."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(hidden)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class KeyPair(Hidden, frozen=True, tag=True):
    """Both halves as 40 characters of Z85."""

    public: str
    secret: str

    @property
    def proof(self) -> str:
        return self.public


class Token(Hidden, frozen=True, tag=True):
    """`secret`: 32 hexadecimal digits."""

    secret: str

    @property
    def proof(self) -> str:
        return token_proof(bytes.fromhex(self.secret))


Credentials = KeyPair | Token
"""What a peer shows when it dials."""


class Address(msgspec.Struct, frozen=True):
    """Where a peer listens; over TCP also the public half of its key pair, without which nobody is trusted."""

    endpoint: str
    server_key: str = ""


def new_key_pair() -> KeyPair:
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def new_token() -> Token:
    return Token(secrets.token_hex(TOKEN_BYTES))


def token_proof(secret: bytes) -> str:
    return hashlib.blake2b(secret, digest_size=32).hexdigest()
