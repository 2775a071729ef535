"""The reference page knows every format, and only formats that are there."""

import re
from pathlib import Path

from common import plugins
from graph_server.ingest.detect import FORMATS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "datasets.md"


def test_each_format_has_a_row():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(plugins.names(FORMATS))
