"""How a role is started: one line of JSON down a pipe that the launcher holds, and lines back up.

    launcher -> role    RoleStart, then AddressBook, then Leave; end of file: exit
    role -> launcher    Listening, then Ended

Nothing secret is ever in an argument or the environment.
"""

import msgspec

from common.job_setup import GraphFacts
from common.wire.channel import Faults
from common.wire.keys import Address, KeyPair, Token
from common.wire.pace import Shaping


class FunctionPlace(msgspec.Struct, frozen=True):
    """Where tensor tasks may be invoked, and how many at once for this graph server."""

    function_name: str
    region: str
    endpoint_url: str | None
    """None: AWS itself."""
    concurrency: int
    memory_mb: int = 1769


class Weather(msgspec.Struct, frozen=True):
    """A bad network, for tests and benchmarks: what befalls messages. Shaping is by the beginning of a peer's name."""

    faults: Faults | None = None
    shaping: dict[str, Shaping] = {}


class RoleStart(msgspec.Struct, frozen=True, kw_only=True):
    """`name`: graph0, parameter1. `admitted`: name -> proof of every peer of this job, itself included."""

    job_id: str
    generation: int
    name: str
    spec: str
    """The job spec as JSON, given keys only."""
    facts: GraphFacts
    graph_folder: str
    endpoint: str
    server_keys: KeyPair | None
    """Of this job's listeners; None on ipc."""
    credentials: KeyPair | Token
    admitted: dict[str, str]
    num_graph_servers: int
    num_parameter_servers: int
    scratch: str
    """The folder of sockets and logs. If the launcher is gone, whoever notices removes it."""
    trace_path: str | None = None
    functions: FunctionPlace | None = None
    checkpoints: str | None = None
    """URL of the folder that parameter servers write them to; None: they write none."""
    resume: str | None = None
    """URL of the checkpoint to start from; None: from the beginning."""
    s3_endpoint: str | None = None
    """None: AWS itself."""
    weather: Weather = Weather()

    @property
    def number(self) -> int:
        return int(self.name.lstrip("abcdefghijklmnopqrstuvwxyz"))


class Leave(msgspec.Struct, frozen=True, tag=True):
    """Exit; the launcher is here, and cleans up."""


class Listening(msgspec.Struct, frozen=True, tag=True):
    endpoint: str


class AddressBook(msgspec.Struct, frozen=True, tag=True):
    """Of every listener of the job."""

    addresses: dict[str, Address]


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The role's last words; `what` is empty if nothing went wrong."""

    what: str = ""
    why: str = ""
    fix: str = ""
    kind: str = ""


Word = Listening | Ended
