"""`make reference` writes docs/reference/ anew."""

from pathlib import Path

from reference.pages import FOLDER, PAGES


def main() -> None:
    """Write each page, and remove what is none any more."""
    folder = Path(__file__).parents[1] / FOLDER
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in PAGES:
            path.unlink()
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
