"""`make reference` writes docs/reference/ anew, and the documents for programs into build/reference/."""

from pathlib import Path

from tools.reference.pages import DOCUMENTS, FOLDER, MADE, PAGES, written

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Write each page and each document, and remove what is none any more."""
    _write(ROOT / FOLDER, {name: page() for name, page in PAGES.items()})
    _write(ROOT / MADE, {name: written(document()) for name, document in DOCUMENTS.items()})


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
