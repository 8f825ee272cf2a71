"""Take an extension, and those that need it, out of a copy of the checkout, and run the tests that are left.

``python .ci/without.py web training`` does so for each of them in turn: it imports every test that is left, and runs those
of the doors of the core; ``--all`` runs all that are not slow. ``tests/conftest.py`` knows which tests of the core need an
extension.
The copy is the same for all, so that Python compiles its files once.
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

LIBRARIES = "src/pipeplan/foundation/kernels/libraries"
"""Where a checkout keeps its compiled kernels."""


def main() -> int:
    """Take out, run, and return the exit code of the first tests that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=NAMES, help="extensions to take out, one after the other")
    parser.add_argument("--all", action="store_true", help="run all tests that are not slow")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy, aside = Path(folder, "copy"), Path(folder, "aside")
        copy_to(copy)
        return next((code for name in arguments.names if (code := tested(name, copy, aside, every=arguments.all))), 0)


def tested(name: str, copy: Path, aside: Path, *, every: bool) -> int:
    """Run the tests without an extension, and return the exit code."""
    gone = deleted_with(name)
    left = [other for other in NAMES if other not in gone]
    print(f"without {', '.join(gone)}: the tests of the core and of {', '.join(left)}", flush=True)
    taken = [path for path in files_of(gone) if (copy / path).exists()]
    move(taken, copy, aside)
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    pytest = [sys.executable, "-m", "pytest", "-q", "-m", "not slow"]
    runs = [["--collect-only", "-qq", "tests"], [*DOORS]]
    if every:
        runs = [["-n", "auto", "--dist", "loadfile", "tests"]]
    codes = (subprocess.run([*pytest, *run], cwd=copy, env=environment, check=False).returncode for run in runs)
    code = next((code for code in codes if code), 0)
    move(taken, aside, copy)
    # The kernels that were built are those of the extensions that were there.
    shutil.rmtree(copy / LIBRARIES, ignore_errors=True)
    return code


def deleted_with(name: str) -> list[str]:
    """Return an extension and all that need it, directly or not."""
    gone = {name}
    for other in NAMES:  # those that are needed come first
        present = extension(other)
        if present is not None and gone & {*present.needs}:
            gone.add(other)
    return [other for other in NAMES if other in gone]


def files_of(gone: list[str]) -> list[str]:
    """Return the folders, tests and pages of extensions."""
    folders = [f"{room}/extensions/{name}" for name in gone for room in ("src/pipeplan", "tests")]
    pages = [f"docs/{page}" for name in gone if (present := extension(name)) is not None for page in present.pages]
    return [*folders, *dict.fromkeys(pages), *(["src/pipeplan/runtime.py"] if "training" in gone else [])]


def move(paths: list[str], origin: Path, target: Path) -> None:
    """Move files and folders from one root to another."""
    for path in paths:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (origin / path).rename(target / path)


def copy_to(copy: Path) -> None:
    """Copy the files that git does not ignore."""
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)


if __name__ == "__main__":
    sys.exit(main())
