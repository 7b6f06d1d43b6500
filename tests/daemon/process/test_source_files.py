"""Which files a reload watches, and what counts as a change."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from discreet.daemon.settings import Settings
from discreet.reload import SourceFiles, differ


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Modules in `sys.modules`, by the path of their file below `tmp_path`."""
    names = {
        "here/app.py": "reload_app",
        "here/sub/part.py": "reload_part",
        "here/.venv/lib/site-packages/dep.py": "reload_dep",
        "elsewhere/reload_pkg/core.py": "reload_pkg.core",
        "elsewhere/other.py": "reload_other",
        "hereafter/near.py": "reload_near",
    }
    for path, name in names.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
        module = ModuleType(name)
        module.__file__ = str(file)
        sys.modules[name] = module
    yield names
    for name in names.values():
        sys.modules.pop(name, None)


def found(tmp_path: Path, *apps: str) -> set[str]:
    stamps = SourceFiles(Settings(apps=apps), str(tmp_path / "here")).stamps({})
    return {os.path.relpath(path, tmp_path) for path in stamps}


def test_modules_below_the_directory_count_but_not_what_is_installed_there(loaded: object, tmp_path: Path) -> None:
    assert found(tmp_path) == {"here/app.py", "here/sub/part.py"}


def test_packages_of_apps_count_wherever_they_are(loaded: object, tmp_path: Path) -> None:
    assert found(tmp_path, "reload_pkg.main:app") == {"here/app.py", "here/sub/part.py", "elsewhere/reload_pkg/core.py"}


def test_modules_below_the_folder_of_an_apps_file_and_below_app_dir_count(loaded: object, tmp_path: Path) -> None:
    assert found(tmp_path, f"{tmp_path}/elsewhere/other.py:app") == {
        *("here/app.py", "here/sub/part.py", "elsewhere/other.py", "elsewhere/reload_pkg/core.py")
    }
    stamps = SourceFiles(Settings(app_dir=str(tmp_path / "hereafter")), str(tmp_path / "here")).stamps({})
    assert str(tmp_path / "hereafter" / "near.py") in stamps


def test_a_page_beside_a_module_counts(loaded: object, tmp_path: Path) -> None:
    (tmp_path / "here" / "sub" / "app.html").write_text("<p>")
    (tmp_path / "here" / "notes.txt").write_text("")
    assert found(tmp_path) == {"here/app.py", "here/sub/part.py", "here/sub/app.html"}


def test_an_edit_a_replacement_and_a_removal_are_changes_and_an_import_is_none(
    loaded: dict[str, str], tmp_path: Path
) -> None:
    sources = SourceFiles(Settings(), str(tmp_path / "here"))
    late = sys.modules.pop("reload_part")
    before = sources.stamps({})
    assert not differ(before, sources.stamps(before))
    sys.modules["reload_part"] = late
    assert not differ(before, sources.stamps(before))
    app = tmp_path / "here" / "app.py"
    app.write_text("edited")
    edited = sources.stamps(before)
    assert differ(before, edited)
    times = os.stat(app)
    (tmp_path / "new").write_text("EDITED")
    os.utime(tmp_path / "new", ns=(times.st_atime_ns, times.st_mtime_ns))
    (tmp_path / "new").replace(app)
    replaced = sources.stamps(edited)
    assert differ(edited, replaced)
    app.unlink()
    assert differ(replaced, sources.stamps(replaced))
