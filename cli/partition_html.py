"""A partition report as one page, with plots that need no other file."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cli.inspect_html import chart, page, table
from cli.inspect_words import Bar, Section
from cli.partition_words import report_rows

if TYPE_CHECKING:
    from local_cloud.partition import PartitionReport


def partition_page(report: PartitionReport) -> str:
    servers = report.shares.servers
    bars = {
        "edges of each graph server": [server.edges for server in servers],
        "train vertices of each graph server": [server.train_vertices for server in servers],
        "vertices of each graph server": [server.vertices for server in servers],
        "ghosts of each graph server": [server.ghosts for server in servers],
        "bytes of each graph server": list(report.server_bytes),
    }
    title = f"{report.name}: {report.num_intervals} intervals on {len(servers)} graph servers"
    parts = [f"<h1>{escape(title)}</h1>", table(Section("report", report_rows(report)))]
    for name, values in bars.items():
        parts.append(chart(name, [Bar(f"graph{place}", value) for place, value in enumerate(values)]))
    return page(title, parts)
