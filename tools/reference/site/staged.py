"""The pages as the site has them: each in its place, and each link to where that is."""

import os.path
import re
from collections.abc import Iterator
from pathlib import Path

from tools.reference.pages import DOCUMENTS, written
from tools.reference.site.matrix import MATRIX, matrix_page

ROOT = Path(__file__).parents[3]
PLACES = {"docs/README.md": "index.md", "README.md": "overview.md"}
"""Pages whose place is not their path, without docs/."""
EXTRA = "extra"
"""The folder that is copied into the site as it is."""

_FENCES = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_LEAD = re.compile(r"^\[([\w-]+)\]: (\S+)\n", re.MULTILINE)
_LED = re.compile(r"\[([^\]]+)\]\[([\w-]+)\]")
_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)

Files = dict[str, bytes]


def staged() -> Files:
    """Everything that Sphinx is given, by its path."""
    files: Files = {}
    for page in sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))):
        text = _inlined(page.read_text(encoding="utf-8"))
        files |= {place: path.read_bytes() for path, place in _copied(page, text)}
        files[place_of(page)] = (_relinked(page, text) + _contents(page, text)).encode()
    files[MATRIX] = matrix_page(ROOT).encode()
    said = {f"{EXTRA}/reference/{name}": written(document()).encode() for name, document in DOCUMENTS.items()}
    files["reference/contract.md"] += (
        f"\nHere they are: {', '.join(f'[{name}](source:{name})' for name in DOCUMENTS)}.\n".encode()
    )
    return files | said


def _inlined(text: str) -> str:
    """The text with each [words][lead] as a link of its own."""
    leads = dict(_LEAD.findall(text))

    def inlined(found: re.Match[str]) -> str:
        return f"[{found[1]}]({leads[found[2]]})" if found[2] in leads else found[0]

    return _LED.sub(inlined, _LEAD.sub("", text)) if leads else text


def place_of(path: Path) -> str:
    """Where a page or a picture of the repository stands in the site."""
    name = str(path.relative_to(ROOT))
    return PLACES.get(name, name.removeprefix("docs/"))


def _is_page(path: Path) -> bool:
    """Whether the site has a page for this file: the pages of the folders of code are shown as text."""
    return path.suffix == ".md" and (path.parent == ROOT or path.is_relative_to(ROOT / "docs"))


def _copied(page: Path, text: str) -> Iterator[tuple[Path, str]]:
    """Pictures that the page shows, and files that it links to; these are shown as text."""
    for _, link in _LINK.findall(text):
        path = _leads_to(page, link)
        if path is not None and path.is_file() and not _is_page(path):
            yield path, place_of(path) if path.suffix == ".png" else f"{EXTRA}/{_source(path)}"


def _leads_to(page: Path, link: str) -> Path | None:
    """The file or folder in the repository that a link leads to; None outside, and within the page."""
    name = link.partition("#")[0]
    return (page.parent / name).resolve() if name and "://" not in link else None


def _source(path: Path) -> str:
    return f"source/{path.relative_to(ROOT)}.txt"


def _relinked(page: Path, text: str) -> str:
    """The text with its links as they are in the site; code blocks stay as they are."""
    here = Path(place_of(page)).parent

    def relinked(found: re.Match[str]) -> str:
        words, link = found[1], found[2]
        path = _leads_to(page, link)
        if path is None:
            return found[0]
        if path.is_dir():
            path = path / "README.md"
            if not path.exists():
                return words
        anchor = link.partition("#")[1] + link.partition("#")[2]
        if _is_page(path) or path.suffix == ".png":
            return f"[{words}]({os.path.relpath(place_of(path), here)}{anchor})"
        return f"[{words}](source:{os.path.relpath(_source(path), here)})"

    parts = _FENCES.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(relinked, part) for part in parts)


def _contents(page: Path, text: str) -> str:
    """For the list at the side: an index has its pages in the sections in which it names them."""
    if page.name != "README.md" or page.parent == ROOT:
        return ""
    lists = []
    for title, section in _SECTION.findall(text) or [("", text)]:
        paths = [path for _, link in _LINK.findall(section) if (path := _leads_to(page, link)) and path.suffix == ".md"]
        lines = [os.path.relpath(place_of(path), Path(place_of(page)).parent).removesuffix(".md") for path in paths]
        if page == ROOT / "docs/README.md" and title == "Change Rollway":
            lines.append(MATRIX.removesuffix(".md"))
        caption = [f":caption: {title}"] if title else []
        lists.append("\n".join(["", "```{toctree}", ":hidden:", *caption, "", *lines, "```", ""]))
    return "\n".join(lists)
