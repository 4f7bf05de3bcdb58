"""`make docs` makes build/site/ from the pages, the code that they name, and the tests."""

import shutil
import subprocess
import sys
from pathlib import Path

from tools.reference.site.staged import ROOT, staged

SPHINX = ROOT / ".venv/docs/bin/python"


def build(folder: Path) -> Path:
    """The site, in `folder`/site. Raises CalledProcessError for a page that Sphinx has a word to say about."""
    pages, site = folder / "pages", folder / "site"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.rmtree(site, ignore_errors=True)
    for name, content in staged().items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).write_bytes(content)
    shutil.copy(Path(__file__).parent / "conf.py", pages)
    shutil.copytree(Path(__file__).parent / "templates", pages / "templates")
    options = ["-q", "-W", "--keep-going", "-j", "2", "-d", str(folder / "doctrees")]
    command = [str(SPHINX), "-m", "sphinx", *options, str(pages), str(site)]
    subprocess.run(command, check=True)  # noqa: S603
    return site


if __name__ == "__main__":
    try:
        made = build(ROOT / "build")
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
    print(f"{made.relative_to(ROOT)}/index.html")  # noqa: T201
