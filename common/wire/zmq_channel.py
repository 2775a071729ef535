"""ZeroMQ behind the face of `channel.py`: a Listener (ROUTER) answers, a Dialer (DEALER) asks.

    frames of a request   [routing id] envelope · header · buffer ...
    frames of a reply     [routing id] envelope · header · buffer ...

ipc   a token in each envelope says who speaks; the folder of the socket is the user's own
TCP   CURVE; the key that the handshake has verified says who speaks

A new connection begins with Hello (job, generation, name), answered with Welcome. See envelope.py for the kinds of
messages, admission.py for who may speak, credit.py for how much may be unanswered.
"""

from common.wire.zmq_dialer import Dialer
from common.wire.zmq_listener import Listener, ListenerOptions

__all__ = ["Dialer", "Listener", "ListenerOptions"]
