"""The tensor function: an invocation serves one lease, and its container stays warm for the next.

It dials out to its graph server and the parameter servers; nothing dials in. What a container may keep is bounded by
its memory.
"""

import asyncio
import os
from typing import Any

import msgspec

from common.kernel_names import kernel_names
from common.wire.identity import Identity
from common.wire.ticket import Ticket
from common.wire.zmq_channel import Dialer
from lambda_functions.lease import Lease, LeaseTerms
from lambda_functions.warm import WarmContainer

MEMORY_MB = int(os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1769"))
CONSTANTS_SHARE = 0.4

# What makes a container warm: it lives as long as the container does, from lease to lease.
WARM = WarmContainer(limit=int(MEMORY_MB * 1_000_000 * CONSTANTS_SHARE))


def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    """The lease's ticket in, how many tasks it did out."""
    ticket = msgspec.convert(event, Ticket)
    return {"tasks": asyncio.run(serve(ticket, WARM))}


async def serve(ticket: Ticket, warm: WarmContainer) -> int:
    kernels = kernel_names()
    me = Identity(ticket.job_id, ticket.generation, ticket.name, kernels)
    terms = LeaseTerms(
        job_id=ticket.job_id,
        generation=ticket.generation,
        lease=ticket.lease,
        graph_server=ticket.graph_server,
        num_parameter_servers=ticket.num_parameter_servers,
        slots=ticket.slots,
        seconds=ticket.seconds,
        kernels=kernels,
        memory_mb=MEMORY_MB,
    )
    async with Dialer(me, ticket.addresses, credentials=ticket.credentials) as channel:
        return await Lease(terms, channel, warm).serve()
