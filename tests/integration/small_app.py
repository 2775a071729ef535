"""`python -m tests.integration.small_app ASSETS`: the app as the CDK's command line runs it, with our code alone for
assets, no dependencies.
"""

import sys
from pathlib import Path

import aws_cdk as cdk

from infra.app import build
from infra.context import Context
from tests.infra.synthesis import small_assets


def main() -> None:
    app = cdk.App()
    build(app, small_assets(Path(sys.argv[1])), Context.read(app.node.get_all_context()))
    app.synth()


if __name__ == "__main__":
    main()
