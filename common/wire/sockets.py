"""Sockets with every option set: sizes, high-water marks, heartbeats, keys. And frames as they are received."""

import re
from dataclasses import dataclass, field

import zmq

from common.errors import WireError
from common.wire.credit import Window
from common.wire.keys import Address, Credentials, KeyPair
from common.wire.loop_socket import LoopSocket

Context = zmq.Context["zmq.Socket[bytes]"]

ZAP_DOMAIN = b"dorylus"
MAX_PATH = 100
"""Bytes of an ipc socket's path: the system's limit is about this, and a longer one fails with a puzzle."""
SHARED_BLOCK = 8192
"""libzmq receives smaller frames in blocks of this size, at any alignment, and a view keeps its block alive."""


@dataclass(frozen=True)
class WireSettings:
    window: Window = field(default_factory=Window)
    retry_seconds: float = 1.0
    """An unanswered request is asked after this often."""
    send_high_water: int = 4096
    """Messages that may wait for a peer that does not read."""
    receive_high_water: int = 1_000_000
    """Messages that may wait to be read, far more than a window of requests. It is meant never to be reached: libzmq
    4.3.5 aborts the process when a peer whose queue is full has hung up and one of its heartbeats is still unread."""
    heartbeat_seconds: float = 2.0
    heartbeat_timeout_seconds: float = 10.0
    """Longer than the largest frame needs on the slowest link, for a heartbeat waits behind it. After it a connection
    that is dead, or whose place another has taken, is made anew."""
    handshake_seconds: float = 2.0
    """A handshake that is not over by then is begun again: so a key may be admitted after its peer has dialled."""
    linger_seconds: float = 0.5
    """For a listener's last replies. Who dials leaves nothing behind."""


def listening_socket(context: Context, settings: WireSettings, keys: KeyPair | None) -> LoopSocket:
    socket = context.socket(zmq.ROUTER)
    _set_common(socket, settings)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
    if keys is not None:
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt_string(zmq.CURVE_PUBLICKEY, keys.public)
        socket.setsockopt_string(zmq.CURVE_SECRETKEY, keys.secret)
        socket.setsockopt(zmq.ZAP_DOMAIN, ZAP_DOMAIN)
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
    return LoopSocket(socket)


def dialling_socket(
    context: Context, settings: WireSettings, address: Address, *, credentials: Credentials, routing_id: bytes
) -> LoopSocket:
    """Connected, or going to be: libzmq tries again for as long as the socket is open."""
    socket = context.socket(zmq.DEALER)
    _set_common(socket, settings)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.ROUTING_ID, routing_id)
    # Only who dials sends heartbeats; a listener answers them, and hangs up when they stop. libzmq 4.3.5 aborts the
    # process when its own heartbeat is due on a connection that was full, or taken over, when its peer hung up.
    socket.setsockopt(zmq.HEARTBEAT_IVL, _milliseconds(settings.heartbeat_seconds))
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _milliseconds(settings.heartbeat_timeout_seconds))
    socket.setsockopt(zmq.HEARTBEAT_TTL, _milliseconds(settings.heartbeat_timeout_seconds))
    if isinstance(credentials, KeyPair):
        socket.setsockopt_string(zmq.CURVE_SERVERKEY, address.server_key)
        socket.setsockopt_string(zmq.CURVE_PUBLICKEY, credentials.public)
        socket.setsockopt_string(zmq.CURVE_SECRETKEY, credentials.secret)
    socket.connect(address.endpoint)
    return LoopSocket(socket)


def check_endpoint(endpoint: str, *, secure: bool) -> None:
    """Raises WireError unless it is a short ipc path, or TCP with keys."""
    kind, _, place = endpoint.partition("://")
    if kind not in {"ipc", "tcp"}:
        raise WireError(f"the address {endpoint}", why="roles speak over ipc or tcp", fix="use ipc://... or tcp://...")
    if kind == "ipc" and len(place.encode()) > MAX_PATH:
        raise WireError(
            f"an ipc path of {len(place.encode())} bytes",
            why=f"a socket's path may have about {MAX_PATH}",
            fix="use a folder with a shorter name",
        )
    if (kind == "tcp") != secure:
        raise WireError(
            f"the address {endpoint} {'with' if secure else 'without'} keys",
            why="TCP is always encrypted with CURVE, and ipc has tokens instead",
            fix="use a key pair with tcp, a token with ipc",
        )


def bound_endpoint(socket: "zmq.Socket[bytes]") -> str:
    """With the port that was chosen. An IPv4 address is written as one, though the socket speaks both."""
    return re.sub(r"\[::ffff:([0-9.]+)\]", r"\1", socket.getsockopt_string(zmq.LAST_ENDPOINT))


def received(frame: zmq.Frame) -> memoryview | bytes:
    """A view of what was received, which it keeps alive; small frames are copied, aligned and on their own."""
    return frame.bytes if len(frame) <= SHARED_BLOCK else frame.buffer


def user_id(frame: zmq.Frame) -> str:
    """Whom the handshake has verified; empty if nobody was asked."""
    try:
        return str(frame.get("User-Id"))
    except zmq.ZMQError:
        return ""


def _set_common(socket: "zmq.Socket[bytes]", settings: WireSettings) -> None:
    socket.setsockopt(zmq.IPV6, 1)
    socket.setsockopt(zmq.MAXMSGSIZE, settings.window.num_bytes)
    socket.setsockopt(zmq.RCVHWM, settings.receive_high_water)
    socket.setsockopt(zmq.SNDHWM, settings.send_high_water)
    socket.setsockopt(zmq.HANDSHAKE_IVL, _milliseconds(settings.handshake_seconds))
    socket.setsockopt(zmq.LINGER, _milliseconds(settings.linger_seconds))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
