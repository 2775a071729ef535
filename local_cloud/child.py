"""How a process that this one has started is ended: its stdin is closed, which it understands; if not, it is killed."""

import asyncio
import contextlib


async def end_child(process: asyncio.subprocess.Process | None, *, seconds: float) -> None:
    """Returns when it is gone; it has so long to go by itself. None: it was never started."""
    if process is None:
        return
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
