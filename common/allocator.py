"""How glibc's malloc is set in every role and function: freed arrays are kept for the next ones, not given back.

By default each array above 128 kB is mapped and unmapped anew, and the kernel zeroes its pages every time; a tensor
task makes a dozen of them. Other systems ignore these variables.
"""

from collections.abc import Mapping

MALLOC: Mapping[str, str] = {
    "MALLOC_MMAP_THRESHOLD_": str(256 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(512 * 2**20),
}
