"""Build hooks of the package: metadata that depends on where it is published, and compiled kernels.

**Metadata.** The repository has no fixed address. The release sets ``PIPEPLAN_REPOSITORY`` to its own, such as
``https://git.example.org/team/pipeplan``; a build without it has no URLs, and its description no links into the repository.

**Kernels.** All of them are written as one C file and compiled. ``PIPEPLAN_PLATFORMS`` selects the target machines:

========== ===========================================================================================================
``this``   the machine that builds (default); if no C compiler works, the build requires the package ziglang, which has one
``all``    all of ``compiler.TARGETS``, compiled by ziglang: the published wheel
``none``   none: kernels run as Python
========== ===========================================================================================================
"""

from __future__ import annotations

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.tags import platform_tags

ZIGLANG = "ziglang==0.17.1"
"""The release that compiles the published wheel: with a fixed release, its bytes are reproducible."""

LIBRARIES = "pipeplan/foundation/kernels/libraries"

C_FILE = "kernels.c"
"""Name of the C file in the sdist."""

REMEDY = "Install a C compiler (cc, gcc or clang) or the Python package ziglang, then install pipeplan again."

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)")
"""Markdown links and images with a relative address."""


class CustomMetadataHook(MetadataHookInterface):
    """Set ``readme`` and ``urls``, which ``pyproject.toml`` declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add both to the metadata of the project, unless it is built from an sdist, which has them."""
        if "readme" in metadata:
            metadata.setdefault("urls", {})
            return
        repository = os.environ.get("PIPEPLAN_REPOSITORY", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": described(text, repository)}
        metadata["urls"] = urls(repository)


def urls(repository: str) -> dict[str, str]:
    """Return the URLs of the project by their labels; none without a repository."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/tree/HEAD/docs",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def described(readme: str, repository: str) -> str:
    """Return the README for a package index: relative links lead to the repository, or become text without one."""

    def link(match: re.Match[str]) -> str:
        image, text, path = match.groups()
        if repository:
            return f"{image}[{text}]({repository}/{'raw' if image else 'blob'}/HEAD/{path})"
        return "" if image else text

    return _LINK.sub(link, readme)


class CustomBuildHook(BuildHookInterface[Any]):
    """Compile the kernels into a wheel, or into the source for an editable installation; an sdist gets their C file."""

    def dependencies(self) -> list[str]:
        """Return ziglang as a build requirement if the build needs it."""
        if self.target_name != "wheel" or self.platforms == "none":
            return []
        if self.platforms == "all":
            return [ZIGLANG]
        try:
            self.compiler.find_compiler()
        except self.compiler.CompilerError:
            # With CC set, the build uses that compiler or reports its error. For this machine, any release of ziglang works.
            return [] if os.environ.get("CC") else ["ziglang"]
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write and compile the kernels, and add the results to the build."""
        self.temporary = TemporaryDirectory()
        folder = Path(self.temporary.name)
        built = self.compiling("built")
        if self.target_name == "sdist":
            path = folder / C_FILE
            path.write_text(self.c_file(), encoding="utf-8")
            build_data["force_include"][str(path)] = C_FILE
            return
        if version == "editable":
            folder = self.source / LIBRARIES
        else:
            build_data["force_include"][str(folder)] = LIBRARIES
        try:
            if version == "editable" and self.platforms == "this":
                built.build_here(self.source, folder / self.compiler.file_name())
            else:
                self.compile(self.c_file(), folder)
                built.note_built(folder)
        except (OSError, self.compiler.CompilerError) as error:
            if self.platforms == "all":
                raise
            self.app.display_warning(
                f"kernels are not compiled, so searches are 10 to 100 times slower: {error}\n{REMEDY}"
            )
            # Installers hide the warnings of a build, so the package repeats the reason at run time.
            with suppress(OSError):
                built.write_at_once(folder / built.NOT_BUILT, str(error))
            return
        if version == "standard" and self.platforms == "this":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary folder, whose files are in the artifact now."""
        self.temporary.cleanup()

    @property
    def platforms(self) -> str:
        """Value of ``PIPEPLAN_PLATFORMS``: this, all or none. Raises ValueError for any other."""
        platforms = os.environ.get("PIPEPLAN_PLATFORMS") or "this"
        if platforms not in ("this", "all", "none"):
            raise ValueError(f"invalid PIPEPLAN_PLATFORMS '{platforms}': expected this, all or none")
        return platforms

    @property
    def source(self) -> Path:
        """Folder that contains the package."""
        return Path(self.root) / "src"

    @property
    def compiler(self) -> Any:
        """Module ``pipeplan.foundation.compiling.compiler``."""
        return self.compiling("compiler")

    def compiling(self, name: str) -> Any:
        """Return a module of ``pipeplan.foundation.compiling``, which needs only the standard library."""
        if str(self.source) not in sys.path:
            sys.path.insert(0, str(self.source))
        return import_module(f"pipeplan.foundation.compiling.{name}")

    def c_file(self) -> str:
        """Return the text of the C file: that of the sdist unless the source is newer, else a new one."""
        path = Path(self.root) / C_FILE
        if path.exists() and path.stat().st_mtime >= max(file.stat().st_mtime for file in self.source.rglob("*.py")):
            return path.read_text(encoding="utf-8")
        text: str = self.compiling("writer").write(self.source)
        return text

    def compile(self, text: str, folder: Path) -> None:
        """Compile the C file for the requested platforms."""
        compiler = self.compiler
        if self.platforms == "none":
            raise compiler.CompilerError("PIPEPLAN_PLATFORMS is none")
        if self.platforms == "this":
            compiler.compile_library(text, folder / compiler.file_name(), compiler.find_compiler())
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = [
                pool.submit(compiler.compile_library, text, folder / name, compiler.ZIG, target)
                for name, target in compiler.TARGETS.items()
            ]
        for future in compiled:
            future.result()


def platform() -> str:
    """Return the platform tag of this machine, without the compatibility that manylinux and musllinux promise."""
    return next(name for name in platform_tags() if not name.startswith(("manylinux", "musllinux")))
