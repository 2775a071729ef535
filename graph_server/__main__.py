"""`python -m graph_server`: started by a launcher, which speaks to it through its stdin and stdout."""

import sys

from threadpoolctl import threadpool_limits

from common.role_process import run_role
from graph_server.role import main

if __name__ == "__main__":
    # One BLAS thread per task, whatever the environment says: their number changes a product's last bits.
    threadpool_limits(limits=1)
    sys.exit(run_role(main))
