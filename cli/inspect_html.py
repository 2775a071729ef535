"""A diagnosis as one page of HTML that needs nothing else: no script, no picture, no font from elsewhere.

Every text may come out of a file of strangers, so all of it is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cli.inspect_words import Bar, Section, class_bars, degree_bars, finding_rows, headline, sections, verdict

if TYPE_CHECKING:
    from graph_server.ingest.doctor.diagnosis import Diagnosis, Finding

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
th { text-align: left; font-weight: normal; color: #666; padding-right: 2rem; }
.finding { border-left: 4px solid #5bc; padding: .3rem 1rem; margin: 1rem 0; background: #f6f8fa; }
.warning { border-color: #e5a50a; } .refused { border-color: #c01c28; }
code { background: #eee; padding: 0 .3rem; } rect { fill: #3584e4; } text { font-size: 12px; }
"""
_ROW, _LABELS, _LONGEST = 20, 120, 460
"""Pixels: the height of a bar with its gap, the place for its label, its greatest length."""


def diagnosis_page(diagnosis: Diagnosis) -> str:
    title = escape(headline(diagnosis))
    parts = [f"<h1>{title}</h1>", f"<p><strong>{escape(verdict(diagnosis))}</strong></p>"]
    if diagnosis.findings:
        parts += ["<h2>findings</h2>", *(_finding(finding) for finding in diagnosis.findings)]
    if diagnosis.edges is not None:
        parts.append(chart("vertices by in-degree", degree_bars(diagnosis.edges)))
    if diagnosis.labels is not None:
        parts.append(chart("vertices by class", class_bars(diagnosis.labels)))
    parts += [table(section) for section in sections(diagnosis)]
    if diagnosis.notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in diagnosis.notes)
        parts.append(f"<h2>said</h2><ul>{items}</ul>")
    return page(headline(diagnosis), parts)


def page(title: str, parts: list[str]) -> str:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _finding(finding: Finding) -> str:
    rows = "".join(
        f"<div>{name}: <code>{escape(value)}</code></div>"
        if name == "option"
        else f"<div>{name}: {escape(value)}</div>"
        for name, value in finding_rows(finding)
    )
    return f'<div class="finding {finding.level}"><strong>{finding.level}: {escape(finding.what)}</strong>{rows}</div>'


def table(section: Section) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in section.rows)
    return f"<h2>{escape(section.title)}</h2><table>{rows}</table>"


def chart(title: str, bars: list[Bar]) -> str:
    most = max((bar.num_vertices for bar in bars), default=0) or 1
    drawn = []
    for place, bar in enumerate(bars):
        top, length = place * _ROW, round(_LONGEST * bar.num_vertices / most, 1)
        drawn.append(
            f'<text x="{_LABELS - 8}" y="{top + 14}" text-anchor="end">{escape(bar.label[:18])}</text>'
            f'<rect x="{_LABELS}" y="{top + 2}" width="{length}" height="{_ROW - 4}"/>'
            f'<text x="{_LABELS + length + 6}" y="{top + 14}">{bar.num_vertices:,}</text>'
        )
    size = f'width="{_LABELS + _LONGEST + 100}" height="{_ROW * len(bars)}"'
    return f'<h2>{escape(title)}</h2><svg role="img" aria-label="{escape(title)}" {size}>{"".join(drawn)}</svg>'
