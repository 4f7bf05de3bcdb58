"""The pages that Sphinx is given: each file has its place, and each link leads to one."""

import os.path
import re
from pathlib import Path

from tools.reference.site.matrix import matrix_page, sentence
from tools.reference.site.staged import ROOT, staged


def test_every_page_and_every_file_that_one_links_to_has_its_place() -> None:
    files = staged()
    assert {"index.md", "overview.md", "guarantees.md", "tests.md", "images/fleet.png"} <= set(files)
    assert files["extra/source/domain/model/deployment.py.txt"] == (ROOT / "domain/model/deployment.py").read_bytes()
    assert b"](source:source/examples/web.yaml.txt)" in files["policies.md"]
    assert b"](../policies.md)" not in files["policies.md"]
    assert {"extra/reference/openapi.json", "extra/reference/tasks.json"} <= set(files)


def test_every_link_of_a_page_leads_to_a_file_that_the_site_has() -> None:
    files = staged()
    links = [
        (name, link)
        for name, text in files.items()
        if name.endswith(".md")
        for link in re.findall(
            r"\]\((?!https?://)([^)#\s]+)", re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", text.decode())
        )
    ]
    assert len(links) > len(files)

    def place(page: str, link: str) -> str:
        folder = "extra" if link.startswith("source:") else ""
        return os.path.normpath(Path(folder, page).parent / link.removeprefix("source:"))

    assert [f"{page}: {link}" for page, link in links if place(page, link) not in files] == []


def test_what_the_tests_show_names_every_test() -> None:
    assert sentence("test_trap_a_wave_waits") == "a wave waits"
    assert f"- {sentence(test_what_the_tests_show_names_every_test.__name__)}\n" in matrix_page(ROOT)
