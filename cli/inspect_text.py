"""A diagnosis as lines of a terminal, with a small histogram of in-degrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.inspect_words import Bar, Section, degree_bars, finding_rows, headline, sections, verdict

if TYPE_CHECKING:
    from graph_server.ingest.doctor.diagnosis import Diagnosis, Finding

BAR_WIDTH = 40
_COLOURS = {"refused": "red", "warning": "yellow", "note": "cyan"}


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    lines = [headline(diagnosis), ""]
    for section in sections(diagnosis):
        lines += [*_section_lines(section), ""]
        if section.title == "edges" and diagnosis.edges is not None:
            lines += ["vertices by in-degree", *_bar_lines(degree_bars(diagnosis.edges)), ""]
    for finding in diagnosis.findings:
        lines += _finding_lines(finding)
    lines += [f"{click.style('said', fg='cyan')}  {note}" for note in diagnosis.notes]
    return [*lines, "", verdict(diagnosis)]


def _section_lines(section: Section) -> list[str]:
    width = max(len(name) for name, _ in section.rows)
    return [section.title, *(f"  {name:<{width}}  {value}" for name, value in section.rows)]


def _bar_lines(bars: list[Bar]) -> list[str]:
    label_width = max(len(bar.label) for bar in bars)
    most = max(bar.num_vertices for bar in bars)
    count_width = len(f"{most:,}")
    return [
        f"  {label:>{label_width}}  {count:>{count_width},}  {'█' * _length(count, most)}".rstrip()
        for label, count in bars
    ]


def _length(count: int, most: int) -> int:
    """What is there can be seen: at least one mark."""
    return max(round(BAR_WIDTH * count / most), 1) if count else 0


def _finding_lines(finding: Finding) -> list[str]:
    level = click.style(finding.level, fg=_COLOURS[finding.level])
    return [f"{level}  {finding.what}", *(f"  {name}: {value}" for name, value in finding_rows(finding))]
