"""Records beside built libraries: the digest they must have, or why the build failed. A checkout rebuilds stale ones."""

from __future__ import annotations

import re
from pathlib import Path

BUILT = "built.txt"
"""File with the digest of this version's libraries and, in a checkout, the state of each of their source files."""

NOT_BUILT = "not_built.txt"
"""File with the reason why there is no library for this machine."""


def note_built(text: str, folder: Path, states: list[str]) -> None:
    """Write the digest of a C file and the states of its sources beside the libraries that were built from it."""
    write_at_once(folder / BUILT, "\n".join([re.findall(r'pipeplan_digest\[\] = "(\w+)"', text)[0], *states]))
    (folder / NOT_BUILT).unlink(missing_ok=True)


def build_here(source: Path, library: Path) -> None:
    """Compile the kernels of a checkout for this machine, and record the states of their source files.

    Raises CompilerError if the compiler fails, KernelError for a kernel that cannot be written as C, and OSError if the
    record cannot be written.
    """
    from pipeplan.foundation.compiling.compiler import compile_library, find_compiler
    from pipeplan.foundation.compiling.writer import write

    # Read before the files are, so that a file saved during the build counts as changed.
    states = [f"{path} {_state(source / path)}" for path in _sources(source)]
    text = write(source)
    compile_library(text, library, find_compiler())
    note_built(text, library.parent, states)


def is_stale(source: Path, library: Path) -> bool:
    """Return True for a checkout whose library is missing or whose sources have changed; False for an installation."""
    if not (source.name == "src" and (source.parent / "pyproject.toml").exists()):
        return False
    try:
        _, *states = (library.parent / BUILT).read_text(encoding="utf-8").splitlines()
        changed = [line for line in states if line != f"{(path := line.split()[0])} {_state(source / path)}"]
    except OSError:
        return True
    return bool(changed) or not library.exists()


def _sources(source: Path) -> list[str]:
    """Return the sources of a library: kernels, the modules that they import, and the package that compiles them."""
    files = {*source.rglob("*_kernel.py"), *(source / "pipeplan" / "foundation" / "compiling").glob("*.py")}
    for path in [*files]:
        for name in re.findall(r"^from ([\w.]+) import", path.read_text(encoding="utf-8"), re.MULTILINE):
            files.add(source.joinpath(*name.split(".")).with_suffix(".py"))
    return sorted(path.relative_to(source).as_posix() for path in files if path.is_file())


def _state(path: Path) -> str:
    """Return the size of a file and the time of its last change in nanoseconds."""
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def write_at_once(path: Path, text: str) -> None:
    """Replace a file atomically: other processes may read it meanwhile."""
    from tempfile import NamedTemporaryFile

    path.parent.mkdir(exist_ok=True)
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text + "\n")
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
