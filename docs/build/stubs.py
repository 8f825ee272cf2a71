"""Stubs of the packages whose names are loaded on first use: what type checkers and editors see of them.

``python -m docs.build.stubs --write`` makes each ``__init__.pyi`` from the table in ``__init__.py``; a test checks that the
files are current.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from pipeplan.foundation.extensions import public_names

PACKAGE = Path(__file__).parents[2] / "src" / "pipeplan"


def files() -> dict[Path, str]:
    """Return the text of each stub by its path."""
    fronts = [
        path for path in PACKAGE.rglob("__init__.py") if "lazy_names(__name__" in path.read_text(encoding="utf-8")
    ]
    return {path.with_suffix(".pyi"): _stub(path) for path in sorted(fronts)}


def _stub(path: Path) -> str:
    package = ".".join(path.parent.relative_to(PACKAGE.parent).parts)
    front: Any = import_module(package)
    addresses = {name: f"{package}.{home}" for home, names in front._HOMES.items() for name in names.split()}
    head = [f'"""Names of {package}, made by ``python -m docs.build.stubs --write``."""', ""]
    if package == "pipeplan":
        head += ["__version__: str", "__all__: list[str]", ""]
        head += [f"from pipeplan import {name} as {name}" for name in front._SUBMODULES]
        addresses |= {name: address.partition(":")[0] for name, address in public_names().items()}
    lines = sorted(f"from {home} import {name} as {name}" for name, home in addresses.items())
    return "\n".join([*head, *lines, ""])


if __name__ == "__main__":
    for stub, text in files().items():
        if "--write" in sys.argv:
            stub.write_text(text, encoding="utf-8")
        elif not stub.exists() or stub.read_text(encoding="utf-8") != text:
            sys.exit(f"{stub} is not current: run python -m docs.build.stubs --write")
