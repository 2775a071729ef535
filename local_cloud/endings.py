"""How a generation ends: with the job's result, or with the error that says best what went wrong."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from common.errors import ClusterError, first_error
from local_cloud.follower import Follower
from local_cloud.generations import is_echo, is_loss
from local_cloud.run_result import RunResult

CAUSE_SECONDS = 2.0
"""An error may be the echo of a role's death, which is heard of by then."""

T = TypeVar("T")


async def until_the_end(
    follower: Follower, watching: Sequence[Coroutine[Any, Any, None]], *, cause_seconds: float = CAUSE_SECONDS
) -> RunResult:
    """Whatever ends first counts: the job, or one of those who are watched."""
    watchers = [asyncio.create_task(watch) for watch in watching]
    job = asyncio.create_task(follower.follow())
    try:
        done, others = await asyncio.wait({job, *watchers}, return_when=asyncio.FIRST_COMPLETED)
        if _succeeded(job):
            return job.result()
        if others and is_echo(_cause(list(done))):
            await asyncio.wait(others, timeout=cause_seconds, return_when=asyncio.FIRST_COMPLETED)
        await follower.tell_what_there_is()
        if job.cancelled():
            raise asyncio.CancelledError
        raise _cause([*watchers, job])
    finally:
        for task in (job, *watchers):
            task.cancel()
        await asyncio.gather(job, *watchers, return_exceptions=True)


def _cause(tasks: Sequence[asyncio.Task[Any]]) -> BaseException:
    """An error of the job's own, else the loss of a role; what others say of that comes last."""
    errors = [error for task in tasks if task.done() and not task.cancelled() and (error := task.exception())]
    errors.sort(key=lambda error: (is_loss(error), is_echo(error)))
    return next(iter(errors), ClusterError("a role ended before the job", fix="start the job again"))


def _succeeded(job: asyncio.Task[RunResult]) -> bool:
    return job.done() and not job.cancelled() and job.exception() is None


async def all_of(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Their results. The first error ends the others, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    return [task.result() for task in tasks]
