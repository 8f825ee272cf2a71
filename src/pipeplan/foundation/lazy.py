"""Names of a package that are loaded on first use (PEP 562), so that a command loads only the modules it needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

_IMPORT = re.compile(r"^ +from (\S+) import (\([^)]*\)|.*)", re.MULTILINE)
_NAME = re.compile(r"\b(?!as\b)\w+")


def lazy_names(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package whose names are loaded from its modules on first use.

    The package declares the names once, by the imports that type checkers see, under ``if TYPE_CHECKING``. A name that is
    imported from the package itself is one of its modules.
    """
    module = sys.modules[package]
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    home_of = {name: home for home, names in _IMPORT.findall(source) for name in _NAME.findall(names)}

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        setattr(module, name, value)
        return value

    names = sorted(name for name, home in home_of.items() if home != package)
    return names, load, lambda: sorted({*vars(module), *home_of})
