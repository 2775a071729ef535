"""Nobody reads half of a block: many threads read and publish, and every read sees one value throughout."""

import threading

import numpy as np

from graph_server.graph.table_lock import TableLock

ROWS, ROUNDS = 20_000, 200


def write(table: np.ndarray, value: int) -> None:
    """In pieces, as a slow memcpy: without the lock a reader gets in between."""
    for first in range(0, ROWS, ROWS // 8):
        table[first : first + ROWS // 8] = value


def hammer(lock: TableLock | None) -> int:
    """How many reads were torn."""
    table, torn, done = np.zeros(ROWS, np.int64), [0], threading.Event()

    def read() -> None:
        while not done.is_set():
            if lock is None:
                values = np.unique(table.copy())
            else:
                with lock.reading():
                    values = np.unique(table.copy())
            torn[0] += len(values) > 1

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for value in range(ROUNDS):
        if lock is None:
            write(table, value)
        else:
            with lock.writing():
                write(table, value)
    done.set()
    for reader in readers:
        reader.join()
    return torn[0]


def test_no_read_is_torn():
    assert hammer(TableLock()) == 0


def test_readers_read_together_and_a_writer_waits_for_them():
    lock, inside, wrote = TableLock(), threading.Barrier(2), threading.Event()
    leave = threading.Event()

    def read() -> None:
        with lock.reading():
            inside.wait(10)
            leave.wait(10)

    def publish() -> None:
        with lock.writing():
            wrote.set()

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    writer = threading.Thread(target=publish)
    writer.start()
    assert not wrote.wait(0.05)
    leave.set()
    for thread in (*readers, writer):
        thread.join(10)
    assert wrote.is_set()
    assert lock.waited > 0
