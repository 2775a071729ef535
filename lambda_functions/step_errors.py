"""What a step of the state machine failed with, in words a person can use."""

import json
from collections.abc import Mapping
from typing import Any

KNOWN = {
    "States.HeartbeatTimeout": "no sign of life from parameter server 0",
    "States.Timeout": "no sign of life from a step or from parameter server 0, or no end in time",
}


def in_words(error: Mapping[str, Any]) -> str:
    """From {Error, Cause}, as a Catch hands it on: the cause of a function's error is JSON, of others plain text."""
    name, cause = str(error.get("Error") or ""), str(error.get("Cause") or "")
    message = _message(cause)
    if name in KNOWN:
        return f"{KNOWN[name]}{f' ({message})' if message else ''}"
    return message or name or "the cause is not known"


def _message(cause: str) -> str:
    try:
        parsed = json.loads(cause)
    except ValueError:
        return cause
    return str(parsed.get("errorMessage", cause)) if isinstance(parsed, dict) else cause
