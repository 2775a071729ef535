"""The function's code asset stays small, and what it shows of a ticket is no secret."""

import subprocess
import sys

import msgspec
import pytest

from common.wire.keys import Address, KeyPair, Token
from common.wire.ticket import Ticket

HEAVY = (
    "scipy",
    "numba",
    "llvmlite",
    "boto3",
    "botocore",
    "aiobotocore",
    "pydantic",
    "yaml",
    "pyarrow",
    "click",
    "rich",
)
OURS = ("graph_server", "parameter_server", "local_cloud", "cli")
MAX_TICKET_BYTES = 4096


@pytest.mark.parametrize("model", ["gat", "gcn", "gin", "graphsage"])
def test_what_a_lease_imports_is_small(model: str):
    """Models are loaded by name, when a lease begins."""
    code = (
        "import sys; import lambda_functions.tensor_task; from common import plugins;"
        f"plugins.load('common.models', '{model}'); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "numpy" in loaded
    assert not loaded & {*HEAVY, *OURS}


def ticket(credentials: KeyPair | Token) -> Ticket:
    addresses = {
        name: Address("tcp://[2600:1f18:1234:5600:1234:5678:9abc:def0]:65535", "k" * 40)
        for name in ("graph63", *(f"parameter{number}" for number in range(16)))
    }
    return Ticket(
        job_id="a-rather-long-name-of-a-job-20260101t000000-abc123",
        generation=3,
        name="lambda123456",
        lease=1234,
        graph_server="graph63",
        addresses=addresses,
        credentials=credentials,
        num_parameter_servers=16,
        slots=2,
        seconds=240.0,
    )


@pytest.mark.parametrize("credentials", [KeyPair("p" * 40, "s" * 40), Token("5" * 32)], ids=["curve", "ipc"])
def test_a_ticket_is_small_and_comes_out_as_it_went_in(credentials: KeyPair | Token):
    event = msgspec.json.encode(ticket(credentials))
    assert len(event) < MAX_TICKET_BYTES
    assert msgspec.convert(msgspec.json.decode(event), Ticket) == ticket(credentials)


def test_a_ticket_shows_no_secret():
    for credentials in (KeyPair("p" * 40, "s" * 40), Token("5" * 32)):
        shown = f"{ticket(credentials)!r} {ticket(credentials)} {credentials!r} {credentials}"
        assert credentials.secret not in shown
