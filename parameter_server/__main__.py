"""`python -m parameter_server`: started by a launcher, which speaks to it through its stdin and stdout."""

import sys

from threadpoolctl import threadpool_limits

from common.role_process import run_role
from parameter_server.role import main

if __name__ == "__main__":
    threadpool_limits(limits=1)
    sys.exit(run_role(main))
