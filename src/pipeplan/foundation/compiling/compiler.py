"""Compile a C file to a library that ``ctypes`` loads.

A build compiles all kernels. At run time, functions from outside the package are compiled once, into the user's cache.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from zlib import crc32

FLAGS = ("-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-w")

SAME_RESULTS = ("-fwrapv", "-fno-math-errno", "-ffp-contract=off")
"""Flags for the same results as Python: ints wrap around, and no multiplication is fused with an addition."""

TARGETS = {
    "kernels-linux-x86_64-gnu.so": "x86_64-linux-gnu.2.17",
    "kernels-linux-aarch64-gnu.so": "aarch64-linux-gnu.2.17",
    "kernels-linux-x86_64-musl.so": "x86_64-linux-musl",
    "kernels-linux-aarch64-musl.so": "aarch64-linux-musl",
    "kernels-macos-x86_64.dylib": "x86_64-macos.11.0",
    "kernels-macos-arm64.dylib": "aarch64-macos.11.0",
    "kernels-windows-amd64.dll": "x86_64-windows-gnu",
}
"""Names of the libraries in the published wheel, with their targets as Zig names them."""

ZIG = [sys.executable, "-m", "ziglang", "cc"]
"""Command of the C compiler in the Python package ziglang."""


class CompilerError(Exception):
    """There is no C compiler, it failed, or its library cannot be stored or trusted."""


def file_name() -> str:
    """Return the name of the library for this machine, whether or not it is among ``TARGETS``."""
    if sys.platform == "win32":
        return f"kernels-windows-{'amd64' if 'AMD64' in sys.version else 'other'}.dll"
    machine = os.uname().machine
    if sys.platform == "darwin":
        return f"kernels-macos-{machine}.dylib"
    try:
        library = "gnu" if os.confstr("CS_GNU_LIBC_VERSION") else "musl"
    except (OSError, ValueError):
        library = "musl"
    return f"kernels-{sys.platform}-{machine}-{library}.so"


def find_compiler() -> list[str]:
    """Return the command of a working C compiler: ``CC`` if it is set, else the first of cc, gcc, clang and ziglang.

    Raises
    ------
    CompilerError
        If no compiler is installed, or all fail, for example because the headers of the C library are missing.
    """
    import shlex
    import shutil
    from tempfile import TemporaryDirectory

    try:
        chosen = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise CompilerError(f"CC is {os.environ['CC']}: {error}") from None
    others = [["cc"], ["gcc"], ["clang"], *([ZIG] if _zig_folder() else [])]
    errors = []
    for name, *options in [chosen] if chosen else others:
        if path := shutil.which(name):
            command = [os.path.abspath(path), *options]
            with TemporaryDirectory() as folder:
                try:
                    compile_library("#include <math.h>\n", Path(folder) / file_name(), command)
                    return command
                except CompilerError as error:
                    errors.append(error)
    raise errors[0] if errors else CompilerError(f"{chosen[0]} not found" if chosen else "no C compiler found")


def compile_library(text: str, output: Path, command: list[str], target: str = "") -> None:
    """Compile a C file. ``output`` is replaced atomically, so that several processes may compile it at the same time.

    Parameters
    ----------
    text
        Text of the C file.
    output
        Path of the library.
    command
        Command of the compiler.
    target
        Target machine as Zig names it, only with the command ``ZIG`` (default: this machine).

    Raises
    ------
    CompilerError
        If the compiler fails or the library cannot be written; the message has the first error.
    """
    import subprocess
    from tempfile import TemporaryDirectory

    flags = [*FLAGS, *SAME_RESULTS, *([] if sys.platform == "darwin" and not target else ["-s"])]
    libraries = ["-lm"]
    if "ziglang" in command:
        # Without a target, Zig would use all instructions of this processor.
        target = target or TARGETS.get(output.name, "")
        flags += ["-target", target] if target else ["-mcpu=baseline"]
    if target.endswith("windows-gnu"):
        # Kernels need no C library on Windows, and Zig takes a minute to build one.
        flags += ["-nostdlib", "-Wl,--no-entry", "-isystem", f"{_zig_folder()}/lib/libc/include/any-windows-any"]
        libraries = ["-lcompiler_rt"]
    try:
        # The folder is beside the output, so that the library can be renamed. Compilers write its name into it: relative
        # names keep the bytes reproducible.
        output.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix=".kernels-", dir=output.parent.absolute()) as folder:
            library = Path(folder) / output.name
            Path(folder, "kernels.c").write_text(text, encoding="utf-8")
            call = [*command, *flags, "kernels.c", "-o", output.name, *libraries]
            # Zig caches the C libraries that it builds; that cache is deleted with the folder.
            variables = {"ZIG_GLOBAL_CACHE_DIR": folder} | os.environ | {"LC_ALL": "C"}
            ended = subprocess.run(
                call, cwd=folder, env=variables, capture_output=True, text=True, errors="replace", check=False
            )
            if ended.returncode or not library.exists():
                raise CompilerError(f"{' '.join(command)}: {_first_error(ended.stderr or ended.stdout)}")
            library.chmod(0o755)
            library.replace(output)
    except OSError as error:
        raise CompilerError(str(error)) from error


def _first_error(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), [*lines, "it failed without a message"][0])


def _zig_folder() -> str:
    """Return the folder of the package ziglang; an empty string if it is not installed."""
    from importlib.util import find_spec

    package = find_spec("ziglang")
    return str(Path(package.origin).parent) if package and package.origin else ""


def checksum(path: Path) -> str:
    """Return a checksum of a file. To load a library with other bytes than it was built with could end the process."""
    return f"{crc32(path.read_bytes()):08x}"


def compiled_once(text: str) -> Path:
    """Return the library of a C file in the user's cache; compile it if it is missing.

    Raises
    ------
    CompilerError
        If it cannot be compiled, or if other users can write to the cache: its files are loaded as code.
    """
    from hashlib import sha256

    digest = sha256("\n".join((*FLAGS, *SAME_RESULTS, text)).encode()).hexdigest()
    folder, name = cache_folder(), digest[:32]
    for path in folder.glob(f"{name}-*"):
        _require_ours(path)
        if path.stem == f"{name}-{checksum(path)}":
            return path
    compiled = folder / f".{name}-{os.getpid()}{Path(file_name()).suffix}"
    compile_library(text, compiled, find_compiler())
    path = folder / f"{name}-{checksum(compiled)}{compiled.suffix}"
    compiled.replace(path)
    return path


def cache_folder() -> Path:
    """Return the user's folder for compiled functions, ``pipeplan/kernels`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    Raises CompilerError if it cannot be created, or if other users can write to it.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pipeplan" / "kernels"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise CompilerError(str(error)) from error
    _require_ours(folder)
    return folder


def _require_ours(path: Path) -> None:
    """Raise CompilerError unless a file or folder belongs to this user or root, and only its owner can write to it."""
    status = path.stat()
    if hasattr(os, "geteuid") and (status.st_uid not in {0, os.geteuid()} or status.st_mode & 0o022):
        raise CompilerError(f"{path} belongs to another user, or others can write to it: delete it")
