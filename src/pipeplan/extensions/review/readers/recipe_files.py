"""Modules of recipes, and those that they import from their own repository: parsed within limits, never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from os.path import isabs, relpath
from pathlib import Path

from pipeplan.extensions.review.readers.recipe_values import Stated
from pipeplan.foundation.errors import FormatError, PipeplanError
from pipeplan.foundation.files import MEBIBYTE, read_text

_MOST_FILES = 40
"""Maximum number of files that are read for one recipe."""

_HIGHEST = 12
"""Maximum number of folders above a recipe in which its repository's packages are looked for."""


@dataclass(eq=False)
class RecipeModule:
    """Python file: its lines, and what its names are bound to as far as they were needed.

    Attributes
    ----------
    folder
        Folder of the file; None: its imports are not read.
    """

    file: str
    lines: list[str]
    tree: ast.Module
    folder: Path | None = None
    names: dict[str, Stated] = field(default_factory=dict)

    @cached_property
    def bindings(self) -> dict[str, ast.stmt]:
        """The last statement that binds each name."""
        return {name: node for node in statements_in(self.tree.body) for name in bound_by(node)}

    @cached_property
    def stars(self) -> list[ast.ImportFrom]:
        """The imports of all names of a module."""
        return [one for one in self.tree.body if isinstance(one, ast.ImportFrom) and one.names[0].name == "*"]


def statements_in(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements with those of conditions and attempts, which any of them may run."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from statements_in([*node.body, *node.orelse])


def bound_by(node: ast.stmt) -> list[str]:
    """Return the names that a statement binds."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign() | ast.AnnAssign() if node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.Import() | ast.ImportFrom():
            return [alias.asname or alias.name for alias in node.names]
    return []


def parsed(text: str, file: str, folder: Path | None) -> RecipeModule:
    """Return a module. Raises FormatError for text that is not Python."""
    try:
        return RecipeModule(file, text.split("\n"), ast.parse(text), folder)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise FormatError(f"{file} is not valid Python{where}") from None


def _changed(path: Path) -> int:
    """Return when a file was changed; 0 if it is gone."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=64)
def _helper(path: Path, changed: int) -> RecipeModule | None:
    """Return a file that recipes import, parsed again when it has changed; None if it cannot be read."""
    try:
        return parsed(read_text(path, limit=MEBIBYTE, what="recipe"), str(path), path.parent)
    except PipeplanError:
        return None


class RecipeFiles:
    """Files that a recipe imports, each parsed once."""

    def __init__(self) -> None:
        self._modules: dict[Path, RecipeModule | None] = {}

    def imported(self, module: RecipeModule, node: ast.ImportFrom) -> RecipeModule | None:
        """Return the module from which a statement imports; None if it lies neither beside the recipe nor above it."""
        path = _path_of(module, node.level, node.module.split(".") if node.module else [])
        if path is None or (path not in self._modules and len(self._modules) >= _MOST_FILES):
            return None
        if path not in self._modules:
            helper = _helper(path, _changed(path))
            # A recipe has names of its own: what it changes of a helper is not another's.
            file = str(path) if isabs(module.file) else relpath(path)
            self._modules[path] = helper and replace(helper, file=file, names={})
        return self._modules[path]


def _path_of(module: RecipeModule, level: int, names: list[str]) -> Path | None:
    """Return the file of a module that lies beside another one, or in a package above it."""
    if module.folder is None:
        return None
    above = (module.folder, *module.folder.parents)
    roots = above[level - 1 : level] if level else above[: _HIGHEST if len(names) > 1 else 1]
    for root in roots:
        for folder in (root, root / "src"):
            for path in (
                folder.joinpath(*names[:-1], f"{(names or ['__init__'])[-1]}.py"),
                folder.joinpath(*names, "__init__.py"),
            ):
                try:
                    if path.is_file():
                        return path
                except (OSError, ValueError):
                    continue
        if not level and (root / ".git").exists():
            break
    return None
