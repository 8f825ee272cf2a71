"""Names of a package that are loaded on first use (PEP 562), so that a command loads only the modules it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Collection[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package whose names are loaded from its modules on first use.

    Parameters
    ----------
    package
        The ``__name__`` of the package.
    homes
        The names by the module of the package that defines them.
    """
    home_of = {name: f"{package}.{module}" for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(home_of), load, lambda: sorted({*vars(sys.modules[package]), *home_of})
