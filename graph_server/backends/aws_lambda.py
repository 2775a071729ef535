"""Tensor tasks on AWS Lambda. An invocation is a lease: the function dials in, asks for tasks until a bound is reached.

The lease book and the lease tuner decide; this shell invokes, answers the functions, and turns what happens into the
book's events.
"""

import asyncio
import time
from dataclasses import asdict, dataclass, field

from common.errors import DorylusError
from common.passes import Pass
from common.saga.arrays import Array
from common.saga.compute import TaskOutputs
from common.wire import messages
from common.wire.channel import Reply
from graph_server.backends.base import BackendOptions, Invocation, TaskResult, TensorTask
from graph_server.lease_tuning import LeaseTuning, Written
from graph_server.schedule.lease_book import LeaseBook
from graph_server.schedule.lease_events import End, GiveUp, LeaseCommand, Open, Send, TaskKey
from graph_server.schedule.token_bucket import TokenBucket

TICK_SECONDS = 0.1
OPENINGS_PER_SECOND = 20.0
"""Below what a new account may start; halved whenever one is throttled."""
CLOSE_SECONDS = 5.0
"""How long functions may take to hear that the job is over."""


@dataclass
class _Slot:
    """The last request of a slot and its answer: the same ask, repeated, gets the same answer."""

    ask: int
    answer: asyncio.Future[Reply]


@dataclass
class _Lease:
    held: set[tuple[int, str]] = field(default_factory=set)
    slots: dict[int, _Slot] = field(default_factory=dict)
    idle: list[_Slot] = field(default_factory=list)
    """Slots that wait for a task, oldest first."""


@dataclass
class _Running:
    """result: None when the task was withdrawn."""

    task: TensorTask
    result: asyncio.Future[TaskResult | None]
    attempts: dict[int, int] = field(default_factory=dict)
    """Lease -> which attempt it was sent."""


class Backend:
    name = "lambda"

    def __init__(self, options: BackendOptions) -> None:
        assert options.functions is not None
        functions = options.functions
        self._job, self._invoke, self._constants = functions.job, functions.invoke, functions.constants
        self._own = functions.own
        target = functions.leases.target
        self._book = LeaseBook(functions.leases, TokenBucket(rate=OPENINGS_PER_SECOND, burst=float(target)))
        written = Written(functions.decided, functions.server, time.monotonic())
        self._tuning = LeaseTuning(self._book, functions.leases, options.cores, written)
        self.places = functions.leases.num_intervals
        self._constant_bytes: dict[int, dict[str, int]] = {}
        self._leases: dict[int, _Lease] = {}
        self._running: dict[TaskKey, _Running] = {}
        self._commands: asyncio.Queue[LeaseCommand] = asyncio.Queue()
        self._error: DorylusError | None = None
        self._kernels: set[str] = set()
        self._invocations: set[asyncio.Task[None]] = set()
        self._moved: set[tuple[int, str]] = set()
        self._moved_again = 0

    @property
    def counts(self) -> dict[str, int]:
        return {**asdict(self._book.counts), "constants_again": self._moved_again}

    @property
    def kernels(self) -> frozenset[str]:
        return frozenset(self._kernels)

    async def run(self, task: TensorTask) -> TaskResult:
        self.saw(task.pass_)
        result = await self.offer(task)
        assert result is not None, "nobody withdraws"
        return result

    async def offer(self, task: TensorTask) -> TaskResult | None:
        """None: it was withdrawn, and is the caller's to do."""
        key = TaskKey(task.pass_, task.position, task.interval)
        running = _Running(task, asyncio.get_running_loop().create_future())
        self._running[key] = running
        if self._error is not None:
            raise self._error
        self._obey(self._book.add(key, time.monotonic(), constant_bytes=self._bytes_of_constants(task)))
        return await running.result

    def withdraw(self) -> bool:
        """Take back a task that no lease has in hand, or whose lease is late. Whether there was one."""
        key = self._book.withdraw()
        running = None if key is None else self._running.pop(key)
        if running is None or running.result.done():
            return False
        running.result.set_result(None)
        return True

    def saw(self, pass_: Pass) -> None:
        """A task of this pass begins, here or elsewhere."""
        self._obey(self._tuning.saw(pass_, time.monotonic()))

    def done_elsewhere(self) -> None:
        self._tuning.tasks_elsewhere += 1

    async def serve(self) -> None:
        """Open leases and let time pass, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tick())
            while True:
                command = await self._commands.get()
                if isinstance(command, Open):
                    self._leases[command.lease] = _Lease()
                    invocation = group.create_task(self._hold(command.lease))
                    self._invocations.add(invocation)
                    invocation.add_done_callback(self._invocations.discard)

    async def close(self) -> None:
        """End all leases and wait, shortly, until their invocations have ended."""
        self._obey(self._book.close(time.monotonic()))
        if self._invocations:
            await asyncio.wait(self._invocations, timeout=CLOSE_SECONDS)

    async def answer(self, message: messages.AnyMessage, buffers: list[Array]) -> Reply | None:
        """None: not a function's message."""
        now = time.monotonic()
        match message:
            case messages.LeaseHello(_, lease) if lease in self._leases:
                self._leases[lease].held = set(message.held)
                self._kernels.add(message.kernels)
                held = {i for i, _ in message.held if self._own is None or i in self._own}
                self._obey(self._book.hello(lease, held, now))
                return messages.LeaseWelcome(self._job), ()
            case messages.NextTask(_, lease, slot, ask) if lease in self._leases:
                self._leases[lease].held -= set(message.evicted)
                return await self._next(lease, slot, ask)
            case messages.TaskDone(_, lease, slot, ask) if lease in self._leases:
                if self._is_new(lease, slot, ask):
                    self._take(message, buffers, now)
                return await self._next(lease, slot, ask)
            case messages.TaskError(_, lease, slot, ask) if lease in self._leases:
                if self._is_new(lease, slot, ask):
                    self._leases[lease].held -= set(message.evicted)
                    self._obey(self._book.failed(lease, _key(message), message.error, now))
                return await self._next(lease, slot, ask)
            case messages.TaskLacks(_, lease) if lease in self._leases:
                self._leases[lease].held -= {(message.interval, name) for name in message.names}
                return self._again(lease, message)
            case messages.LeaseHello() | messages.NextTask():
                return messages.LeaseOver("this lease is over"), ()
            case messages.TaskDone() | messages.TaskError() | messages.TaskLacks():
                return messages.LeaseOver("this lease is over"), ()
        return None

    # ---- slots

    def _is_new(self, lease: int, slot: int, ask: int) -> bool:
        known = self._leases[lease].slots.get(slot)
        return known is None or known.ask < ask

    async def _next(self, lease: int, slot: int, ask: int) -> Reply:
        book = self._leases[lease]
        if self._is_new(lease, slot, ask):
            book.slots[slot] = _Slot(ask, asyncio.get_running_loop().create_future())
            book.idle.append(book.slots[slot])
            self._obey(self._book.ask(lease, time.monotonic()))
        # shielded: a repeat of the request waits for the same answer
        return await asyncio.shield(book.slots[slot].answer)

    def _again(self, lease: int, message: messages.TaskLacks) -> Reply:
        running = self._running.get(_key(message))
        if running is None:
            return messages.LeaseOver("this task is done"), ()
        return self._task_message(lease, running.task, attempt=1)

    # ---- what happens to tasks

    def _take(self, message: messages.TaskDone, buffers: list[Array], now: float) -> None:
        book, key = self._leases[message.lease], _key(message)
        book.held -= set(message.evicted)
        if not self._book.done(message.lease, key, now):
            return
        running = self._running.pop(key)
        outputs = TaskOutputs(dict(zip(message.names, buffers, strict=True)), {}, message.sums)
        if not running.result.done():
            began = now - message.seconds
            moved, attempt = (message.weights_bytes, message.gradient_bytes), running.attempts.get(message.lease, 1)
            running.result.set_result(TaskResult(outputs, began, now, *moved, attempt, self.name))

    def _obey(self, commands: list[LeaseCommand]) -> None:
        for command in commands:
            match command:
                case Open():
                    self._commands.put_nowait(command)
                case Send(lease, key, attempt):
                    self._send(lease, key, attempt)
                case End(lease, reason):
                    for slot in self._leases[lease].idle:
                        slot.answer.set_result((messages.LeaseOver(reason), ()))
                    self._leases[lease].idle.clear()
                case GiveUp(error):
                    self._error = error
                    for running in self._running.values():
                        if not running.result.done():
                            running.result.set_exception(error)

    def _send(self, lease: int, key: TaskKey, attempt: int) -> None:
        slot, running = self._leases[lease].idle.pop(0), self._running[key]
        running.attempts[lease] = attempt
        slot.answer.set_result(self._task_message(lease, running.task, attempt=attempt))

    def _task_message(self, lease: int, task: TensorTask, *, attempt: int) -> Reply:
        held = self._leases[lease].held
        constants = tuple(n for n in task.rows if n in self._constants and (task.interval, n) not in held)
        rows = tuple(n for n in task.rows if n not in self._constants)
        again = [name for name in constants if (task.interval, name) in self._moved]
        self._moved_again += sum(task.rows[name].nbytes for name in again)
        fresh = {(task.interval, name) for name in constants}
        held.update(fresh)
        self._moved.update(fresh)
        message = messages.Task(task.pass_, task.position, task.interval, attempt, constants, rows)
        return message, [task.rows[name] for name in (*constants, *rows)]

    def _bytes_of_constants(self, task: TensorTask) -> int:
        """Of all that its interval's tasks were seen to read."""
        known = self._constant_bytes.setdefault(task.interval, {})
        known.update({name: rows.nbytes for name, rows in task.rows.items() if name in self._constants})
        return sum(known.values())

    # ---- leases

    async def _hold(self, lease: int) -> None:
        ended = await self._invoke(lease)
        for slot in self._leases.pop(lease).slots.values():
            if not slot.answer.done():
                slot.answer.set_result((messages.LeaseOver("its invocation has ended"), ()))
        now = time.monotonic()
        throttled, lost = ended is Invocation.THROTTLED, ended is Invocation.LOST
        self._obey(self._book.closed(lease, now, lost=lost, throttled=throttled))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._obey(self._book.tick(time.monotonic()))
            self._tuning.tick()


def _key(message: messages.TaskDone | messages.TaskError | messages.TaskLacks) -> TaskKey:
    return TaskKey(message.pass_, message.position, message.interval)
