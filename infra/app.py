"""What `cdk` runs, by cdk.json: context in, one checked stack out."""

import aws_cdk as cdk

from infra.acknowledgements import acknowledge, add_rules
from infra.assets import Assets
from infra.bundle import BUILT
from infra.context import Context
from infra.stack import DorylusStack


def build(app: cdk.App, assets: Assets, context: Context) -> DorylusStack:
    stack = DorylusStack(app, context, assets)
    add_rules(app)
    acknowledge(stack)
    return stack


def main() -> None:
    app = cdk.App()
    context = Context.read(app.node.get_all_context())
    build(app, Assets.built(BUILT, context), context)
    app.synth()


if __name__ == "__main__":
    main()
