"""How kernels are compiled: without the interpreter's lock, once, and kept on disk for the next process.

Numba keeps what it compiled in `__pycache__` beside the kernel's file, else in the user's cache, or where
NUMBA_CACHE_DIR says. By itself it notices edits in the kernel's own file, and no others; and it numbers a kernel's
files without a lock, so that two processes that compile different forms of it at once may mix them up. Hence the name
under which a kernel is kept says which form it is, and of which sources.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

Kernel = Callable[..., Any]
SOURCES = ("compiling.py", "exponential.py", "vectors.py")
"""What kernels are made of, besides their own files."""


def _digest() -> str:
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()[:12]


SOURCES_DIGEST = _digest()


def kernel(form: str = "") -> Callable[[Kernel], Kernel]:
    """Compile a function for the types it is called with; `form` tells apart the forms that one factory makes.

    A factory's kernel may use the factory's numbers and flags, but no functions of it: what those compile to differs
    from process to process, and nothing would be found again.
    """

    def compile_(function: Kernel) -> Kernel:
        function.__qualname__ = f"{function.__name__}{form and '_'}{form}-{SOURCES_DIGEST}"
        try:
            return njit(nogil=True, cache=True, error_model="numpy")(function)
        except RuntimeError:  # nowhere to write
            return njit(nogil=True, error_model="numpy")(function)

    return compile_
