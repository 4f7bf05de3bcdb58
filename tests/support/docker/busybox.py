"""An image of one static program, made on this machine."""

import io
import tarfile
from pathlib import Path

import docker

from tests.support.docker.docker_engine import NoEngineError, found

REPOSITORY = "rollway-test/busybox"
IMAGE = f"{REPOSITORY}:1"


def import_busybox(url: str) -> None:
    """IMAGE, made from this machine's static busybox: no registry is asked."""
    with docker.APIClient(base_url=url) as api:
        api.import_image_from_data(busybox_layer(), repository=REPOSITORY, tag="1")


def busybox_layer() -> bytes:
    """A root file system of one static program and /bin/sh, as a tar. Raises NoEngineError without a busybox."""
    program = Path(found("busybox")).read_bytes()
    if b"/ld-linux" in program[:4096]:
        raise NoEngineError("the busybox found here is not static: install busybox-static")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("bin", "tmp", "srv"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(entry)
        file = tarfile.TarInfo("bin/busybox")
        file.size, file.mode = len(program), 0o755
        tar.addfile(file, io.BytesIO(program))
        for name in ("sh", "sleep", "httpd", "env", "cat"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return buffer.getvalue()
