"""The reference page of the job spec, made from the schema.

Write it anew with `python -m cli.spec_reference > docs/reference/job_spec.md`.
"""

import sys

from cli.spec_flags import flag_name
from common.spec_keys import Key, groups, keys
from common.spec_layers import show
from common.spec_words import ALIASES
from common.unbuilt import UNBUILT

_TOP = """\
# The job spec

One schema for every training job. YAML or JSON, at most 1 MB; `dataset` is the only key that must be there, and it may
be just a text: `dataset: cora`. This page is made from the schema by `python -m cli.spec_reference`.

The order of precedence: schema defaults, the model's own defaults, what the reader or a bundled dataset is known to
work with, the file, flags; the later wins, key by key. The resolved spec is written next to the results and says where
each value came from. An unknown key, a key that stands twice and a key in the wrong group are errors.

Nothing under `cluster`, `backend`, `budget` or `output` changes a bit of any weights version in sync or pipe mode (a
budget may end the run earlier). What can lies under `dataset`, `cut`, `model` and `training`.

Where a key or a value says *not in this version*, setting it is refused.
"""


def markdown() -> str:
    """The whole page, ending in a newline."""
    parts = [_TOP, *(_group(name, about) for name, about in groups().items()), _aliases()]
    return "\n".join(parts)


def _group(name: str, about: str) -> str:
    title = f"## `{name}`\n\n{about}" if name else "## At the top"
    rows = [_row(key) for key in keys().values() if key.group == name]
    header = "| key | allowed | default | flag | meaning |\n|---|---|---|---|---|"
    return "\n".join([title, "", header, *rows, ""])


def _row(key: Key) -> str:
    flag = flag_name(key.dotted)
    flag = f"`{flag}`" if flag else ""
    if key.is_switch and flag:
        flag += f" `--no-{flag[3:-1]}`"
    default = "must be given" if key.required else f"`{show(key.default)}`"
    cells = [f"`{key.leaf}`", key.allowed, default, flag, " ".join([key.meaning, *_limits(key)])]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _limits(key: Key) -> list[str]:
    row = next((row for row in UNBUILT if row.key == key.dotted), None)
    if row is None:
        return []
    if row.refused_prefix:
        return [f"*{row.refused_prefix}... is not in this version.*"]
    if not row.works:
        return ["*Not in this version.*"]
    return [f"*In this version only {' or '.join(f'`{show(value)}`' for value in row.works)}.*"]


def _aliases() -> str:
    rows = [f"| `{alias}` | `{key}` |" for alias, key in ALIASES.items()]
    about = "Accepted under the group where the right key lives, reported once, echoed under the right name."
    return "\n".join(["## Aliases", "", about, "", "| alias | key |", "|---|---|", *rows, ""])


if __name__ == "__main__":
    sys.stdout.write(markdown())
