"""The command and the environment of a worker: what a function has on AWS, and nothing of this machine's own.

Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html. There are no credentials: a local
function that needs any gets them through its own environment.
"""

import importlib.util
import os
import sys
from pathlib import Path

from local_cloud.lambda_service.settings import FunctionConfig

ACCOUNT = "123456789012"
REGION = "us-east-1"
WORKER_MAIN = Path(__file__).with_name("worker_main.py")


def function_arn(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def choose_runtime(wanted: str) -> str:
    """awslambdaric has wheels for Linux only; elsewhere our own client speaks with the Runtime API."""
    if wanted != "auto":
        return wanted
    return "awslambdaric" if importlib.util.find_spec("awslambdaric") else "pure_python"


def worker_command(function: FunctionConfig, *, runtime: str, lifeline: int) -> list[str]:
    """-P keeps the folder of worker_main.py off the function's path."""
    return [sys.executable, "-P", str(WORKER_MAIN), str(lifeline), runtime, function.handler]


def worker_environment(function: FunctionConfig, *, runtime_api: str, log_stream: str) -> dict[str, str]:
    """`runtime_api` is HOST:PORT and cannot hold a path: hence a port for every worker."""
    return {
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": os.environ.get("PATH", os.defpath),
        "TZ": ":UTC",
        **function.environment,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": log_stream,
        "AWS_LAMBDA_RUNTIME_API": runtime_api,
        "AWS_REGION": REGION,
        "LAMBDA_RUNTIME_DIR": str(WORKER_MAIN.parent),
        "LAMBDA_TASK_ROOT": function.task_root,
        "PYTHONPATH": os.pathsep.join(filter(None, [function.task_root, function.environment.get("PYTHONPATH", "")])),
        "_HANDLER": function.handler,
    }
