"""Every link of the documentation to a file, or to a heading of a file, leads somewhere."""

import re
from pathlib import Path

from tests.architecture.tree import ROOT, project_files, text

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
PAGES = [path for path in project_files() if path.suffix == ".md"]


def anchors(page: str) -> set[str]:
    """As GitHub makes them: lower case, no punctuation, hyphens for spaces."""
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in HEADING.findall(page)}


def leads_nowhere(page: Path, target: str) -> bool:
    if re.match(r"[a-z]+:", target):
        return False
    file, _, anchor = target.partition("#")
    path = (page.parent / file) if file else page
    if not (ROOT / path).exists():
        return True
    return bool(anchor) and anchor not in anchors((ROOT / path).read_text(encoding="utf-8"))


def test_every_link_leads_somewhere():
    links = [(page, target) for page in PAGES for target in LINK.findall(text(page))]
    assert links
    assert not [f"{page}: {target}" for page, target in links if leads_nowhere(page, target)]


def test_a_dead_link_would_be_found():
    assert leads_nowhere(Path("README.md"), "docs/no_such_page.md")
    assert leads_nowhere(Path("docs/architecture.md"), "#no-such-heading")
    assert not leads_nowhere(Path("docs/architecture.md"), "#invariants")
