"""A partition report in words: names and values, the same for a terminal and for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # For its type alone: what makes a report takes seconds to load.
    from local_cloud.partition import PartitionReport


def report_rows(report: PartitionReport) -> list[tuple[str, str]]:
    of, payload = report.shares, report.payload
    ghosts, per_server = sum(server.ghosts for server in of.servers), [size / 1e6 for size in report.server_bytes]
    edges, train = (
        f"{servers:.3f} of servers, {intervals:.3f} of intervals"
        for servers, intervals in (
            (of.edge_balance_of_servers, of.edge_balance_of_intervals),
            (of.train_balance_of_servers, of.train_balance_of_intervals),
        )
    )
    moved = f"{payload.ghosts / 1e6:,.1f} MB between servers, {report.payload_total / 1e6:,.1f} MB in all"
    return [
        ("graph", f"{report.name}: {report.num_nodes:,} vertices, {report.num_edges:,} edges"),
        ("cut", f"{report.method}, {report.num_intervals} intervals on {len(of.servers)} graph servers"),
        ("between intervals", f"{of.cut_between_intervals:.2%} of the edges"),
        ("between servers", f"{of.cut_between_servers:.2%} of the edges"),
        ("ghosts", f"{ghosts:,}, replication {of.replication:.3f}"),
        ("edges, largest/mean", edges),
        ("train, largest/mean", train),
        (f"epoch of {report.model}", moved),
        ("memory of each server", ", ".join(f"{size:,.1f}" for size in per_server) + " MB"),
        ("took", f"{report.seconds:.1f} s, {report.peak_rss_bytes / 1e6:,.0f} MB at the most"),
    ]
