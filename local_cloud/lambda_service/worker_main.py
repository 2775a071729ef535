"""The main program of a worker: `worker_main.py LIFELINE_FD RUNTIME HANDLER`, standard library only.

The service holds the other end of the lifeline, and nobody else does: its end of file means that the service is gone,
however it went, and ends this process and all it started. A process that stands still cannot read: on Linux the kernel
is asked to let it go on when the service dies; elsewhere the system itself ends a stopped group that nobody is left to
continue.
"""

import os
import runpy
import signal
import sys
import threading
from pathlib import Path

PR_SET_PDEATHSIG = 1


def die_with_the_service(lifeline: int) -> None:
    os.set_inheritable(lifeline, False)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGCONT)
    threading.Thread(target=_wait_for_the_end, args=(lifeline,), daemon=True).start()


def _wait_for_the_end(lifeline: int) -> None:
    while os.read(lifeline, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    lifeline, runtime, handler = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    die_with_the_service(lifeline)
    if runtime == "awslambdaric":
        from awslambdaric.__main__ import main as run

        run(["awslambdaric", handler])
    else:
        runpy.run_path(str(Path(__file__).with_name("runtime_client.py")))["run"](handler)


if __name__ == "__main__":
    main()
