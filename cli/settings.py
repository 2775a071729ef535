"""The job spec's keys as options of a command: one each, made from the schema, grouped in --help by group.

What is typed goes to the schema as text, so that a wrong value gets the schema's own answer.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import click

from cli.spec_flags import Flag, flag_layer, flags
from common.resolve_spec import Layer
from common.spec_keys import groups, keys
from common.spec_layers import show


class SettingOption(click.Option):
    """One key of the job spec. Its parameter's name is the key's, `training.lr` as `training__lr`."""

    def __init__(self, flag: Flag) -> None:
        self.group = flag.dotted_key.rpartition(".")[0]
        name = f"--{flag.name[2:]}/--no-{flag.name[2:]}" if flag.type == "boolean" else flag.name
        super().__init__(
            [name, parameter_name(flag.dotted_key)],
            type=bool if flag.type == "boolean" else str,
            default=None,
            metavar=None if flag.type == "boolean" else _metavar(flag),
            help=_help(flag),
        )


class GroupedCommand(click.Command):
    """Lists its own options first, then those of each group of the job spec in the schema's order."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        settings = [option for option in options if isinstance(option, SettingOption)]
        _section(formatter, "Options", [option for option in options if option not in settings], ctx)
        for group, about in groups().items():
            title = f"{group}: {about.rstrip('.')}" if group else "Job"
            _section(formatter, title, [option for option in settings if option.group == group], ctx)


def setting_options(*, without: Collection[str] = (), of: Collection[str] | None = None) -> list[click.Parameter]:
    """`without`: full names of keys that the command takes otherwise; `of`: only keys under these groups."""
    wanted = [flag for flag in flags() if flag.dotted_key not in without]
    return [SettingOption(flag) for flag in wanted if of is None or flag.dotted_key.partition(".")[0] in of]


def cache_dir_option() -> click.Option:
    """Parameter `cache_dir`: None if nothing was said."""
    return click.Option(
        ["--cache-dir"],
        type=click.Path(path_type=Path),
        envvar="DORYLUS_CACHE",
        help="Where cut graphs are kept. [default: the user's cache directory; also $DORYLUS_CACHE]",
    )


def typed(settings: Mapping[str, object], **more: str | None) -> Layer:
    """The layer of what was typed: parameters by the names of `parameter_name`, and `more` of the same kind."""
    given = {name.replace("__", "."): value for name, value in {**settings, **more}.items() if value is not None}
    return flag_layer(given)


def parameter_name(dotted_key: str) -> str:
    return dotted_key.replace(".", "__")


def _metavar(flag: Flag) -> str:
    return f"[{'|'.join(flag.choices)}]" if flag.choices else flag.dotted_key.rpartition(".")[2].upper()


def _help(flag: Flag) -> str:
    default = keys()[flag.dotted_key].default
    text = flag.help.replace("`", "")
    return text if default is None else f"{text}  [default: {show(default)}]"


def _section(formatter: click.HelpFormatter, title: str, options: Iterable[click.Option], ctx: click.Context) -> None:
    rows = [row for option in options if (row := option.get_help_record(ctx)) is not None]
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)
