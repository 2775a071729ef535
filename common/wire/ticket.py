"""The event of an invocation. A small file of its own: it is all of this that the function's code needs."""

import msgspec

from common.wire.keys import Address, KeyPair, Token


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A lease: small (< 4 KB), never with tensors, only ever in a synchronous invocation."""

    job_id: str
    generation: int
    name: str
    lease: int
    graph_server: str
    addresses: dict[str, Address]
    credentials: KeyPair | Token
    num_parameter_servers: int
    slots: int
    seconds: float

    def __repr__(self) -> str:
        return f"Ticket({self.job_id}, generation {self.generation}, lease {self.lease} of {self.graph_server})"
