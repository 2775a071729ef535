"""How many examples a property test tries: its own number, or more when DORYLUS_EXAMPLES asks for them."""

import os


def examples(default: int) -> int:
    """For `@settings(max_examples=examples(200))`; DORYLUS_EXAMPLES never makes a test smaller."""
    return max(default, int(os.environ.get("DORYLUS_EXAMPLES") or 0))
