"""The door of a listener with keys: libzmq asks here, once per handshake, whether a public key may come in.

The answer bears the public key as User-Id, which libzmq then attaches to every frame of that connection.
Source: https://rfc.zeromq.org/spec/27 (ZAP).
"""

import zmq
from zmq.utils import z85

from common.wire.admission import Admission
from common.wire.loop_socket import LoopSocket
from common.wire.sockets import ZAP_DOMAIN, Context

ENDPOINT = "inproc://zeromq.zap.01"
COME_IN, LATER = b"200", b"300"
"""LATER: the handshake fails and may be tried again. After a 400 libzmq's client would never try again, though its key
may be admitted a moment later."""


class ZapDoor:
    def __init__(self, context: Context, admission: Admission) -> None:
        """Opened before the listener is bound: without it libzmq would let every key in."""
        self._socket, self._admission = LoopSocket(context.socket(zmq.REP)), admission
        self._socket.raw.bind(ENDPOINT)

    async def serve(self) -> None:
        while True:
            asked = await self._socket.receive()
            self._socket.send(self._answer([frame.bytes for frame in asked]))

    def close(self) -> None:
        self._socket.close(linger=0)

    def _answer(self, frames: list[bytes]) -> list[bytes]:
        """frames: version, request id, domain, address, routing id, mechanism, credentials."""
        version, request_id, domain, _, _, mechanism, *credentials = frames
        key = z85.encode(credentials[0]).decode() if mechanism == b"CURVE" and len(credentials) == 1 else ""
        if domain == ZAP_DOMAIN and self._admission.name(key) is not None:
            return [version, request_id, COME_IN, b"", key.encode(), b""]
        return [version, request_id, LATER, b"not admitted", b"", b""]
