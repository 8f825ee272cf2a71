"""Names of a package that are loaded on first use (PEP 562), so that a command loads only the modules it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package whose names are loaded from its modules on first use.

    ``homes`` has the names of each module, separated by blanks. Type checkers read them in the package's stub,
    ``__init__.pyi``, which ``python -m docs.build.stubs --write`` makes from the same table.
    """
    module = sys.modules[package]
    home_of = {name: f"{package}.{home}" for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(import_module(home_of[name]), name)
        setattr(module, name, value)
        return value

    return sorted(home_of), load, lambda: sorted({*vars(module), *home_of})
