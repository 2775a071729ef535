"""`dorylus train [TARGET]`: train a model, show how it goes, say how it ended."""

import signal
import sys
from pathlib import Path

import click

from cli.failures import ERROR, STOPPED, in_words
from cli.progress import watching
from cli.report import result_lines, show_result
from cli.settings import GroupedCommand, cache_dir_option, setting_options, typed

HELP = """Train a model on a whole graph.

TARGET is a bundled dataset (dorylus train cora), a job spec (job.yaml), or a dataset: a file or a folder, whose format
is detected. Flags win over the job spec, which wins over defaults. Results go into a run folder under runs/.

Ctrl-C stops after the epoch; a run that was stopped, killed or lost goes on with dorylus train --resume RUN_FOLDER."""


SWITCHES = ("quiet", "as_json", "in_process", "secure", "ignore_memory")


def _train(
    target: str | None, run_dir: Path | None, resume: Path | None, cache_dir: Path | None, **settings: object
) -> None:
    quiet, as_json, in_process, secure, ignore_memory = (bool(settings.pop(name)) for name in SWITCHES)
    # Here, not above: the machinery takes a second to load, and --help needs none of it.
    from graph_server.graph.cache import default_cache_dir
    from local_cloud.load_job import load_job, need_a_target
    from local_cloud.resume import load_run
    from local_cloud.summary import to_json
    from local_cloud.training import RunOptions, train_job

    with in_words(interrupted="stopped before training began; nothing was kept"):
        flags = typed(settings)
        if resume is None:
            need_a_target(target, flags)
            resolved = load_job(target, flags, Path.cwd())
        else:
            _need_nothing_else(target, run_dir)
            resolved = load_run(resume, flags, Path.cwd())
        with watching(resolved, silent=as_json or quiet) as observer:
            options = RunOptions(
                Path.cwd(),
                cache_dir or default_cache_dir(),
                resume or run_dir,
                in_process=in_process,
                secure=secure,
                resume=resume is not None,
                ignore_memory=ignore_memory,
            )
            summary = train_job(resolved, options, observer)
            if summary.state == "Stopped":  # the exit code says so; one more Ctrl-C must not change it
                signal.signal(signal.SIGINT, signal.SIG_IGN)
    if as_json:
        click.echo(to_json(summary), nl=False)
    elif quiet or not sys.stdout.isatty():
        click.echo("\n".join(result_lines(summary)))
    else:
        show_result(summary)
    sys.exit({"Completed": 0, "Stopped": STOPPED}.get(summary.state, ERROR))


def _need_nothing_else(target: str | None, run_dir: Path | None) -> None:
    given = f"TARGET {target}" if target is not None else "--run-dir" if run_dir is not None else None
    if given is not None:
        raise click.UsageError(f"{given} and --resume: a resumed run has its own job spec and its own folder.")


train = GroupedCommand(
    "train",
    callback=_train,
    help=HELP,
    params=[
        click.Argument(["target"], required=False),
        click.Option(["--run-dir"], type=click.Path(path_type=Path), help="The run folder itself; new or empty."),
        click.Option(
            ["--resume"],
            type=click.Path(path_type=Path),
            metavar="RUN_FOLDER",
            help="Go on with this run, from its newest checkpoint.",
        ),
        cache_dir_option(),
        click.Option(["--in-process"], is_flag=True, help="All roles in this process, instead of one each."),
        click.Option(["--secure"], is_flag=True, help="CURVE over TCP between the roles, instead of ipc."),
        click.Option(
            ["--ignore-memory"], is_flag=True, help="Start even if the forecast says that memory is too small."
        ),
        click.Option(["--quiet"], is_flag=True, help="Say only how it ended."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the summary as JSON, alone on stdout."),
        *setting_options(),
    ],
)
