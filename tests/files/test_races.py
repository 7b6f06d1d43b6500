"""Nobody gets outside the root by changing it while a request works in it; and no descriptor is left open."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from discreet.errors import OperationError
from discreet.files.root import Root
from discreet.files.service import FileSystem
from discreet.files.types import FileExists, FileNotFound, NotAFile, OutsideRoot
from support.fs import CTX, SECRET, Cancelled, Request, finishes, lay_out, refusal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="symbolic links, FIFOs and dir_fd are POSIX")

RACE_READS = 20_000
RACE_ENOUGH = 100


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A root with files, directories and links out of it, next to what must stay out of reach."""
    return lay_out(tmp_path)


# Races, first at the one moment that matters, then at any

_at_call: dict[tuple[str, str], Callable[[], object]] = {}
_opened: list[str] = []
_watching = threading.Event()


def _watch_calls(event: str, args: tuple[object, ...]) -> None:
    """An audit hook (PEP 578): runs after Python was told to open, link or rename a name and before the system is."""
    if _watching.is_set() and event in ("open", "os.link"):
        name = str(args[0] if event == "open" else args[1])
        _opened.append(name)
        if act := _at_call.pop((event, name), None):
            act()


@pytest.fixture(scope="module")
def _hook() -> None:
    sys.addaudithook(_watch_calls)  # can't be taken away again, but sleeps between tests


@pytest.fixture
def just_before(_hook: None) -> Iterator[dict[tuple[str, str], Callable[[], object]]]:
    """What to do at the very moment when a name is to be opened or linked: a race that is always lost."""
    _opened.clear()
    _watching.set()
    yield _at_call
    _watching.clear()
    assert not _at_call, "the moment never came"


JustBefore = dict[tuple[str, str], Callable[[], object]]


def put_in_place_of(live: Path, other: Path) -> Callable[[], None]:
    def act() -> None:
        live.rename(live.with_name("aside"))
        other.rename(live)

    return act


def test_a_file_that_becomes_a_link_just_before_it_is_opened_is_refused(
    fs: FileSystem, place: Path, just_before: JustBefore
) -> None:
    just_before["open", "top.txt"] = put_in_place_of(place / "top.txt", place / "to_file")
    assert isinstance(refusal(lambda: fs.read(CTX, "top.txt")), OutsideRoot)


def test_a_directory_that_becomes_a_link_just_before_it_is_entered_is_refused(
    fs: FileSystem, place: Path, just_before: JustBefore
) -> None:
    just_before["open", "a"] = put_in_place_of(place / "a", place / "to_directory")
    assert isinstance(refusal(lambda: fs.read(CTX, "a/secret.txt")), OutsideRoot)


def test_a_directory_that_becomes_a_link_once_entered_is_still_the_directory(
    fs: FileSystem, place: Path, just_before: JustBefore
) -> None:
    just_before["open", "b"] = put_in_place_of(place / "a", place / "to_directory")
    assert fs.read(CTX, "a/b/two.txt").content == "inside two"
    assert (place / "a" / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize("what", ["fifo", "a"])
def test_a_file_that_becomes_something_else_just_before_it_is_opened_is_no_file(
    fs: FileSystem, place: Path, fifo: Path, just_before: JustBefore, what: str
) -> None:
    just_before["open", "top.txt"] = put_in_place_of(place / "top.txt", place / what)
    assert isinstance(finishes(lambda: fs.read(CTX, "top.txt")), NotAFile)


def test_a_fifo_is_not_even_opened(fs: FileSystem, fifo: Path, just_before: JustBefore) -> None:
    assert isinstance(finishes(lambda: fs.read(CTX, "fifo")), NotAFile)
    assert isinstance(finishes(lambda: fs.write(CTX, "fifo", "x")), NotAFile)
    assert "fifo" not in _opened


def test_a_file_that_someone_creates_first_is_left_alone(fs: FileSystem, place: Path, just_before: JustBefore) -> None:
    just_before["os.link", "new.txt"] = lambda: (place / "new.txt").write_text("theirs")
    assert isinstance(refusal(lambda: fs.write(CTX, "new.txt", "ours", mode="create")), FileExists)
    assert (place / "new.txt").read_text() == "theirs"
    assert not list(place.glob(".discreet-*"))


@contextmanager
def swapping(live: Path, other: Path) -> Iterator[None]:
    """Exchange two names again and again, so that each stands at `live` half of the time."""
    over = threading.Event()
    aside = live.with_name("aside")

    def swap() -> None:
        while not over.is_set():
            os.rename(live, aside)
            os.rename(other, live)
            os.rename(live, other)
            os.rename(aside, live)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def outcomes(act: Callable[[], object], enough: int = RACE_ENOUGH) -> Counter[object]:
    """What `act` gave, until both a result and a refusal came often enough."""
    seen: Counter[object] = Counter()
    for _ in range(RACE_READS):
        try:
            seen[act()] += 1
        except OperationError as error:
            seen[type(error)] += 1
        refused = sum(seen[kind] for kind in (OutsideRoot, NotAFile))
        if refused >= enough and seen.total() - refused - seen[FileNotFound] >= enough:
            break
    return seen


@pytest.fixture
def contested(place: Path) -> Path:
    """A directory, and beside it a link to a directory outside that has the same names in it."""
    (place / "d" / "deep").mkdir(parents=True)
    (place / "d" / "secret.txt").write_text("inside")
    (place / "d" / "deep" / "secret.txt").write_text("inside")
    (place / "link").symlink_to("../outside")
    return place / "d"


def test_a_directory_swapped_for_a_link_during_the_walk_never_leads_outside(fs: FileSystem, contested: Path) -> None:
    with swapping(contested, contested.with_name("link")):
        seen = outcomes(lambda: fs.read(CTX, "d/deep/secret.txt").content)
    assert set(seen) - {FileNotFound} == {"inside", OutsideRoot}


def test_a_directory_swapped_for_a_link_is_never_listed_or_searched_outside(fs: FileSystem, contested: Path) -> None:
    (contested / "inside.txt").write_text("nothing")
    (contested.parent.parent / "outside" / "outside.txt").write_text(SECRET)
    with swapping(contested, contested.with_name("link")):
        listed = outcomes(lambda: tuple(entry.name for entry in fs.list(CTX, "d").entries))
        found = outcomes(lambda: fs.search(CTX, "secret", "d").matches)
        whole = {fs.search(CTX, SECRET).matches for _ in range(300)}
    assert set(listed) - {FileNotFound} == {("deep", "inside.txt", "secret.txt"), OutsideRoot}
    assert set(found) - {FileNotFound} == {(), OutsideRoot}
    assert whole == {()}


def test_a_directory_swapped_for_a_link_is_never_written_to_outside(fs: FileSystem, contested: Path) -> None:
    outside = contested.parent.parent / "outside"
    before = sorted(outside.rglob("*"))
    with swapping(contested, contested.with_name("link")):
        seen = outcomes(lambda: fs.write(CTX, "d/secret.txt", "changed").size, enough=20)  # each waits for the disk
    assert set(seen) - {FileNotFound} == {len("changed"), OutsideRoot}
    assert sorted(outside.rglob("*")) == before
    assert (outside / "secret.txt").read_text() == SECRET
    assert (contested / "secret.txt").read_text() == "changed"


# Descriptors


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_a_thousand_calls_of_every_kind_leave_no_descriptor_open(fs: FileSystem, fifo: Path) -> None:
    acts: list[Callable[[], object]] = [
        lambda: fs.read(CTX, "a/b/two.txt"),
        lambda: fs.read(CTX, "a/b/missing"),
        lambda: fs.read(CTX, "to_file"),
        lambda: fs.read(CTX, "to_directory/deep/secret.txt"),
        lambda: fs.read(CTX, "a/b"),
        lambda: fs.read(CTX, "fifo"),
        lambda: fs.read(CTX, "top.txt/x"),
        lambda: fs.list(CTX, "a/b"),
        lambda: fs.list(CTX, "a", limit=1),
        lambda: fs.list(CTX, "top.txt"),
        lambda: fs.stat(CTX, "a/b"),
        lambda: fs.stat(CTX, "a/b/missing"),
        lambda: fs.search(CTX, "inside"),
        lambda: fs.search(CTX, "inside", "top.txt"),
        lambda: fs.write(CTX, "a/new.txt", "new"),
        lambda: fs.write(CTX, "a/new.txt", "new", mode="create"),
        lambda: fs.write(CTX, "to_directory/x", "new"),
    ]
    before = open_descriptors()
    for number in range(1000):
        try:
            acts[number % len(acts)]()
        except OperationError:
            continue
    assert open_descriptors() == before


def test_a_cancelled_call_leaves_no_descriptor_open(fs: FileSystem) -> None:
    before = open_descriptors()
    for act in (fs.list, lambda ctx: fs.search(ctx, "x"), lambda ctx: fs.write(ctx, "new.txt", "x")):
        with pytest.raises(Cancelled):
            act(Request(looks=0))
    assert open_descriptors() == before


def test_a_closed_root_answers_nothing_and_closes_twice(place: Path) -> None:
    before = open_descriptors()
    root = Root(str(place))
    root.close()
    root.close()
    assert open_descriptors() == before
    with pytest.raises(OSError):
        FileSystem(root).read(CTX, "top.txt")


def test_descriptors_are_not_inherited_by_children(place: Path) -> None:
    before = inheritance()
    with closing(Root(str(place))) as root, root.open_parent("top.txt") as (directory, name):
        fd = directory.open_file(name)
        ours = inheritance().items() - before.items()
        os.close(fd)
    assert [inheritable for _, inheritable in ours] == [False, False, False]


def inheritance() -> dict[int, bool]:
    """Every open descriptor, and whether a child would get it."""
    found: dict[int, bool] = {}
    for fd in range(1024):
        with suppress(OSError):
            found[fd] = os.get_inheritable(fd)
    return found
