"""`make docs` makes a site in which every link leads somewhere, and which loads nothing from outside."""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tools.reference.site.__main__ import SPHINX, build
from tools.reference.site.staged import staged

MISSING = "NO SPHINX, SO THE SITE IS NOT MADE HERE: 'make docs' installs it into .venv/docs"
needs_sphinx = pytest.mark.skipif(not SPHINX.exists(), reason=MISSING)
LOADED = {"img", "link", "script", "iframe", "source", "form"}


@dataclass
class Seen(HTMLParser):
    """What a page links to, what a browser loads for it, and the places in it that links may name."""

    links: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in {"href", "src", "action"}:
                (self.loaded if tag in LOADED else self.links).add(value)
            elif value and name == "id":
                self.ids.add(value)


@cache
def seen(page: Path) -> Seen:
    parser = Seen()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def leads_nowhere(page: Path, link: str) -> bool:
    """A link within the site to no file, or to no place in its page."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return not path.is_file() or (
        path.suffix == ".html" and bool(parts.fragment) and parts.fragment not in seen(path).ids
    )


@needs_sphinx
def test_the_site_is_whole_and_asks_nobody_outside(tmp_path: Path) -> None:
    site = build(tmp_path)
    pages = sorted(site.rglob("*.html"))
    assert {f"{Path(name).with_suffix('')}.html" for name in staged() if name.endswith(".md")} <= {
        str(page.relative_to(site)) for page in pages
    }
    links = [(page, link) for page in pages for link in seen(page).links | seen(page).loaded]
    assert [f"{page.relative_to(site)}: {link}" for page, link in links if leads_nowhere(page, link)] == []
    loaded = {link for page in pages for link in seen(page).loaded}
    assert sorted(link for link in loaded if urlsplit(link).netloc or urlsplit(link).scheme not in {"", "data"}) == []
    styles = "".join(style.read_text(encoding="utf-8") for style in site.rglob("*.css"))
    assert re.findall(r"@import|url\(\s*['\"]?(?:https?:)?//", styles) == []
    said = "".join(text.decode() for name, text in staged().items() if name.endswith(".md"))
    outside = {link for page in pages for link in seen(page).links if urlsplit(link).netloc}
    assert sorted(link for link in outside if link not in said) == []
    words = (site / "searchindex.js").read_text(encoding="utf-8").removeprefix("Search.setIndex(").rstrip(")\n;")
    found = json.loads(words)
    assert {name.removesuffix(".md") for name in staged() if name.endswith(".md")} <= set(found["docnames"])
    assert "canari" in found["terms"]
