"""Which file an app's name stands for, what it may import, and what is said where it stands for none."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from discreet.daemon.apps import AppError, load, load_object
from discreet.daemon.settings.option import read_reference

SERVICE = "from discreet import Service\n{before}\nsvc = Service({name!r})\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, which is not on the module path; what a test imports is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    assert sys.path == path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write(path: Path, name: str, before: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SERVICE.format(name=name, before=before))
    return path


def name_of(app: str, app_dir: Path | None = None) -> str:
    (service,) = load([app], None if app_dir is None else str(app_dir)).services
    return service.namespace


def refusal(app: str, app_dir: Path | None = None) -> str:
    with pytest.raises(AppError) as caught:
        load([app], None if app_dir is None else str(app_dir))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "file", ["shop_of_test.py", "my-shop.py", "calendar.py", "msgspec.py", "__main__.py", "my shop.py"]
)
def test_the_file_that_is_named_is_loaded_whatever_its_name(file: str, folder: Path) -> None:
    before = sys.modules.get(file.removesuffix(".py"))
    write(folder / file, "named")
    assert name_of(f"{folder}/{file}:svc") == "named"
    if before is not None:
        assert sys.modules[file.removesuffix(".py")] is before


def test_files_of_one_name_in_two_folders_are_two_modules_and_each_is_loaded_once(folder: Path) -> None:
    for name in ("one", "two", "three"):
        write(folder / name / "same_name.py", name, "print('loaded')")
    apps = [f"{folder}/{name}/same_name.py:svc" for name in ("one", "two", "three", "two")]
    services = load(apps).services
    assert [service.namespace for service in services] == ["one", "two", "three", "two"]
    assert services[1] is services[3]


def test_what_stands_beside_the_file_is_importable_but_takes_no_installed_name(folder: Path) -> None:
    (folder / "neighbour_of_test.py").write_text("word = 'beside'\n")
    for name in ("fnmatch", "structlog", "wsgiref"):
        (folder / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    write(folder / "app_of_test.py", "app", "import fnmatch, structlog, wsgiref.util\nimport neighbour_of_test")
    assert name_of(f"{folder}/app_of_test.py:svc") == "app"
    assert sys.modules["neighbour_of_test"].__file__ == str(folder / "neighbour_of_test.py")


def test_what_is_written_beside_the_file_later_is_not_importable(folder: Path) -> None:
    write(folder / "app_of_test.py", "app")
    name_of(f"{folder}/app_of_test.py:svc")
    (folder / "written_later.py").write_text("raise SystemExit('ran')\n")
    assert find_spec("written_later") is None


def test_a_folder_is_no_place_for_plug_ins(folder: Path) -> None:
    info = folder / "evil-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[discreet_test]\nevil = evil:app\n")
    write(folder / "app_of_test.py", "app")
    name_of(f"{folder}/app_of_test.py:svc", folder)
    assert not importlib.metadata.entry_points(group="discreet_test")


def test_a_file_of_a_package_is_imported_as_its_module_and_nothing_beside_the_package_is(folder: Path) -> None:
    write(folder / "pkg_of_test" / "__init__.py", "package")
    write(folder / "pkg_of_test" / "sub" / "__init__.py", "sub")
    write(folder / "pkg_of_test" / "sub" / "mod.py", "module", "from . import svc as own\nfrom .. import svc as upper")
    (folder / "beside_the_package.py").write_text("")
    assert name_of(f"{folder}/pkg_of_test/sub/mod.py:svc") == "module"
    assert name_of(f"{folder}/pkg_of_test/__init__.py:svc") == "package"
    assert sys.modules["pkg_of_test.sub.mod"].__package__ == "pkg_of_test.sub"
    assert find_spec("beside_the_package") is None


def test_app_dir_makes_its_modules_importable_after_the_installed_ones(folder: Path) -> None:
    write(folder / "lib" / "shop_in_dir.py", "shop", "import fnmatch")
    (folder / "lib" / "fnmatch.py").write_text("raise SystemExit('shadowed')\n")
    assert "no installed module shop_in_dir" in refusal("shop_in_dir:svc")
    assert name_of("shop_in_dir:svc", folder / "lib") == "shop"


def test_an_identity_provider_is_found_by_the_same_rule(folder: Path) -> None:
    (folder / "who_of_test.py").write_text("who = object()\n")
    with pytest.raises(AppError, match="no installed module who_of_test; to run ./who_of_test.py write"):
        load_object("who_of_test:who", None)
    assert type(load_object(f"{folder}/who_of_test.py:who", None)) is object


@pytest.mark.parametrize(
    ("app", "said"),
    [
        ("shop:svc", "'shop:svc': no installed module shop; to run ./shop.py write ./shop.py:svc"),
        ("pkg.mod:svc", "'pkg.mod:svc': no installed module pkg.mod; to run ./pkg/mod.py write ./pkg/mod.py:svc"),
        ("pkg:svc", "'pkg:svc': no installed module pkg; to run ./pkg/__init__.py write ./pkg/__init__.py:svc"),
        ("gone.py:svc", "no installed module gone.py; a file is named by its path: ./gone.py:svc"),
        ("gone_of_test:svc", "'gone_of_test:svc': no installed module gone_of_test"),
        ("./pkg/none.py:svc", "'./pkg/none.py:svc': there is no such file"),
        ("./shop.py:shop", "'./shop.py:shop': there is no shop; the module has other, svc"),
        ("./a.b.py:svc", "'./a.b.py:svc': a name with a dot can't be imported"),
        ("./msgspec/mod.py:svc", "its package has the name of another module, msgspec"),
        ("./pkg2/needs.py:svc", "its import failed (no module named shop; --app-dir . would find it here)"),
    ],
)
def test_what_cannot_be_hosted_is_answered_with_what_would_work(app: str, said: str, folder: Path) -> None:
    for name in ("shop.py", "pkg/__init__.py", "pkg/mod.py", "msgspec/__init__.py", "msgspec/mod.py", "a.b.py"):
        write(folder / name, "s", "other = Service('o')")
    (folder / "pkg2").mkdir()
    (folder / "pkg2" / "needs.py").write_text("import shop\n")
    text = app.replace("./", f"{folder}/") if app.startswith("./") else app
    assert said in refusal(text)


def test_every_app_that_can_not_be_hosted_is_named(folder: Path) -> None:
    (folder / "apps_broken.py").write_text("raise ValueError('first line\\nsecond line')\n")
    (folder / "apps_other.py").write_text("thing = 3\n")
    paths = ["apps_broken:x", "apps_other:thing", "apps_other:none", "apps_missing:x", "nocolon", ":x", "x:"]
    with pytest.raises(AppError) as caught:
        load(paths, str(folder))
    message = str(caught.value)
    assert "\n" not in message
    assert all(repr(path) in message for path in paths)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_reference_is_read_the_same_way_everywhere() -> None:
    for text in ("a.b:c.d", "./x.py:y", "/x/y z.py:a", "../x.py:a", "a/b.py:c"):
        assert read_reference(text) is not None
    for no_reference in ("", ":", "a", "a:", "./x:y", "x.py", 3, None, ["a:b"], "a b:c", "./x.py:y z"):
        assert read_reference(no_reference) is None
