"""Delete an extension, and those that need it, from a copy of the checkout, and run the tests that are left.

``python .ci/without.py web`` imports every test that is left, and runs those of the core's doors; ``--all`` runs all that
are not slow. ``tests/conftest.py`` knows which tests of the core need an extension.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pipeplan.foundation.extensions import NAMES, extension

ROOT = Path(__file__).parents[1]

DOORS = ("tests/test_extensions.py", "tests/test_lazy.py", "tests/cli")
"""Tests of what finds extensions: registrations, public names, and the commands of the core."""


def main() -> int:
    """Delete, run, and return the exit code of the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=NAMES, help="extension to delete")
    parser.add_argument("--all", action="store_true", help="run all tests that are not slow")
    arguments = parser.parse_args()
    gone = deleted_with(arguments.name)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        copy_without(gone, copy)
        left = [name for name in NAMES if name not in gone]
        print(f"without {', '.join(gone)}: the tests of the core and of {', '.join(left)}", flush=True)
        environment = os.environ | {"PYTHONPATH": str(copy / "src")}
        pytest = [sys.executable, "-m", "pytest", "-q", "-m", "not slow"]
        runs = [["-n", "auto", "--dist", "loadfile", "tests"]]
        if not arguments.all:
            runs = [["--collect-only", "-qq", "tests"], ["-n", "auto", "--dist", "loadfile", *DOORS]]
        codes = (subprocess.run([*pytest, *run], cwd=copy, env=environment, check=False).returncode for run in runs)
        return next((code for code in codes if code), 0)


def deleted_with(name: str) -> list[str]:
    """Return an extension and all that need it, directly or not."""
    gone = {name}
    for other in NAMES:  # those that are needed come first
        present = extension(other)
        if present is not None and gone & {*present.needs}:
            gone.add(other)
    return [other for other in NAMES if other in gone]


def copy_without(gone: list[str], copy: Path) -> None:
    """Copy the files that git does not ignore, without the folders, tests and pages of extensions."""
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    folders = [f"{room}/extensions/{name}/" for name in gone for room in ("src/pipeplan", "tests")]
    pages = {f"docs/{page}" for name in gone if (present := extension(name)) is not None for page in present.pages}
    doors = {"src/pipeplan/runtime.py"} if "training" in gone else set()
    for name in listed.stdout.split("\0"):
        if name and name not in pages | doors and not name.startswith(tuple(folders)):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)


if __name__ == "__main__":
    sys.exit(main())
