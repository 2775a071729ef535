"""The command `dorylus`: arguments in, words out."""

import click

from cli.convert import convert
from cli.explain import explain
from cli.inspect import inspect
from cli.train import train


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="dorylus", prog_name="dorylus", message="%(prog)s %(version)s")
def main() -> None:
    """Train graph neural networks on the whole graph."""


main.add_command(train)
main.add_command(explain)
main.add_command(inspect)
main.add_command(convert)

if __name__ == "__main__":
    main()
