"""The command `dorylus`: arguments in, words out."""

import click

from cli.convert import convert
from cli.doctor import doctor
from cli.explain import explain
from cli.generate import generate
from cli.inspect import inspect
from cli.jobs import download, list_, logs, status, stop
from cli.partition import partition
from cli.plan import plan
from cli.submit import submit
from cli.train import train


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="dorylus", prog_name="dorylus", message="%(prog)s %(version)s")
def main() -> None:
    """Train graph neural networks on the whole graph."""


main.add_command(train)
main.add_command(explain)
main.add_command(inspect)
main.add_command(convert)
main.add_command(generate)
main.add_command(partition)
main.add_command(plan)
for command in (submit, status, list_, logs, stop, download, doctor):
    main.add_command(command)

if __name__ == "__main__":
    main()
