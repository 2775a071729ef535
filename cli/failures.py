"""How a command fails: what, why and fix on stderr, and an exit code. What nobody expected keeps its traceback.

0 done · 1 an error, or training failed · 2 typed wrongly · 130 stopped, by Ctrl-C, SIGTERM or the budget
"""

import contextlib
import sys
from collections.abc import Iterator

import click

from common.errors import DorylusError

ERROR, STOPPED = 1, 130


@contextlib.contextmanager
def in_words(*, interrupted: str) -> Iterator[None]:
    """`interrupted`: what to say of a Ctrl-C that nobody below has taken."""
    try:
        yield
    except DorylusError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(ERROR)
    except KeyboardInterrupt:
        click.echo(interrupted, err=True)
        sys.exit(STOPPED)
