"""A graph server as a process of its own: a listener for other graph servers and functions, its partition, its loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from common.job_setup import derive_programs, task_job
from common.job_spec import JobSpec
from common.kernel_names import kernel_names
from common.peak_memory import PeakMemory
from common.role_process import end_with_parent, read_book, say
from common.role_start import AddressBook, Listening, RoleStart
from common.saga.arrays import Array
from common.trace import LeaseDecision, StepRecord, TraceFile
from common.wire import messages
from common.wire.admission import Admission
from common.wire.channel import Channel, Reply, Traffic
from common.wire.clients import ParameterClient
from common.wire.identity import Identity
from common.wire.keys import new_key_pair, new_token
from common.wire.ticket import Ticket
from common.wire.zmq_channel import Dialer, Listener, ListenerOptions
from graph_server.assemble import AssemblyOptions, graph_server
from graph_server.backends.base import FunctionOptions
from graph_server.billed import Billed
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.partition import Partition, deal_folder
from graph_server.graph.share import files_of_server, reads_ghost_features
from graph_server.lease_settings import lease_settings
from graph_server.server import GraphServer

SLOTS = 2
"""Tasks a lease holds at once: while one computes, the next one's inputs are on the way."""
BEAT_SECONDS = 1.0


Recorder = Callable[[StepRecord | LeaseDecision], None]


class GraphRole:
    def __init__(self, start: RoleStart) -> None:
        self._start, self._spec = start, JobSpec.model_validate_json(start.spec)
        self._admission, self._traffic, self._memory = Admission(), Traffic(), PeakMemory()
        self._server: asyncio.Future[GraphServer] = asyncio.get_running_loop().create_future()
        self._finished = asyncio.Event()
        self._billed: Billed | None = None
        for name, proof in start.admitted.items():
            self._admission.admit(name, proof)

    async def run(self) -> None:
        start = self._start
        me = Identity(start.job_id, start.generation, start.name, kernel_names())
        weather = start.weather
        options = ListenerOptions(traffic=self._traffic, shaping=weather.shaping, faults=weather.faults)
        async with Listener(
            me,
            self._answer,
            endpoint=start.endpoint,
            admission=self._admission,
            keys=start.server_keys,
            options=options,
        ) as listener:
            say(Listening(listener.endpoint))
            book = await read_book(start)
            end_with_parent(start)
            dialer = Dialer(me, book.addresses, credentials=start.credentials, faults=weather.faults)
            async with dialer as channel:
                await self._serve(channel, book)

    async def _serve(self, channel: Channel, book: AddressBook) -> None:
        client = ParameterClient(
            channel, num_parameter_servers=self._start.num_parameter_servers, generation=self._start.generation
        )
        async with asyncio.TaskGroup() as group:
            # its loop is this one: it beats while it loads, and stops beating when it hangs
            group.create_task(self._beat(client))
            partition = await asyncio.to_thread(self._partition)
            async with AsyncExitStack() as stack:
                record = self._recorder(stack)
                functions = await stack.enter_async_context(self._functions(partition, client, book, record))
                server = await asyncio.to_thread(self._assemble, partition, channel, functions, record)
                self._server.set_result(server)
                await server.run()
            # Its results are still asked for: the launcher ends this process.
            self._finished.set()

    def _partition(self) -> Partition:
        path, facts, number = Path(self._start.graph_folder), self._start.facts, self._start.number
        folder = GraphFolder.open(path, only=())
        book = deal_folder(folder, self._start.num_graph_servers)
        widths = {"num_features": facts.num_features, "num_classes": facts.num_classes}
        ghost_features = reads_ghost_features(derive_programs(self._spec, **widths, task=facts.task))
        only = files_of_server(folder, book, number, ghost_features=ghost_features)
        return Partition.load(GraphFolder.open(path, only=only), book, number)

    def _assemble(
        self, partition: Partition, channel: Channel, functions: FunctionOptions | None, record: Recorder
    ) -> GraphServer:
        options = AssemblyOptions(functions, record, self._start.generation)
        return graph_server(self._spec, self._start.facts, partition, channel, options)

    def _recorder(self, stack: AsyncExitStack) -> Recorder:
        if self._start.trace_path is None:
            return lambda _: None
        return stack.enter_context(TraceFile(Path(self._start.trace_path))).write

    @asynccontextmanager
    async def _functions(
        self, partition: Partition, client: ParameterClient, book: AddressBook, record: Recorder
    ) -> AsyncIterator[FunctionOptions | None]:
        place = self._start.functions
        if place is None:
            yield None
            return
        # Here, not above: AWS's client takes a second to load, and on its own cores a graph server needs none.
        from graph_server.function_invoker import FunctionInvoker

        leases = lease_settings(
            self._spec, num_own=len(partition.own), concurrency=place.concurrency, number=self._start.number
        )
        async with FunctionInvoker(
            place,
            lambda lease: self._ticket(lease, book),
            lease_seconds=leases.seconds,
            admission=self._admission,
            parameters=client,
        ) as invoker:
            self._billed = invoker.billed
            job = task_job(self._spec, self._start.facts)
            own = frozenset(partition.own)
            number = self._start.number
            yield FunctionOptions(job, leases, invoker.invoke, job.programs().constants, own, number, record)

    def _ticket(self, lease: int, book: AddressBook) -> Ticket:
        start, secure = self._start, self._start.server_keys is not None
        wanted = {start.name, *(f"parameter{n}" for n in range(start.num_parameter_servers))}
        return Ticket(
            job_id=start.job_id,
            generation=start.generation,
            name=f"lambda{lease * start.num_graph_servers + start.number}",
            lease=lease,
            graph_server=start.name,
            addresses={name: address for name, address in book.addresses.items() if name in wanted},
            credentials=new_key_pair() if secure else new_token(),
            num_parameter_servers=start.num_parameter_servers,
            slots=SLOTS,
            seconds=float(self._spec.backend.lease_seconds),
        )

    def _status(self) -> messages.RoleStatus:
        if not self._server.done():
            return messages.RoleStatus(0)
        server, traffic = self._server.result(), self._traffic
        counts = self._counts(server)
        return messages.RoleStatus(server.tasks_in_flight, dict(traffic.payload), dict(traffic.overhead), counts)

    def _counts(self, server: GraphServer) -> dict[str, int]:
        return server.counts if self._billed is None else {**server.counts, **self._billed.counts}

    async def _beat(self, client: ParameterClient) -> None:
        while True:
            await client.beat(self._start.name)
            await asyncio.to_thread(self._memory.sample)  # it walks all pages of this process
            await asyncio.sleep(BEAT_SECONDS)

    async def _answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        if isinstance(message, messages.PullReport):
            await self._finished.wait()
            server, traffic = self._server.result(), self._traffic
            report = messages.RoleReport(
                dict(traffic.payload),
                dict(traffic.overhead),
                self._counts(server),
                tuple(sorted({kernel_names(), *server.kernels})),
                self._memory.sample(at_once=True),
            )
            return report, ()
        if isinstance(message, messages.PullStatus):
            return self._status(), ()
        return await (await asyncio.shield(self._server)).answer(peer, message, buffers)


async def main(start: RoleStart) -> None:
    await GraphRole(start).run()
