"""Megatron-Bridge beside us: its configuration takes what a plan's launch script sets.

Its packages import every model, and so much that its configuration does not need: they are imported without their
``__init__``.
"""

import sys
from pathlib import Path
from types import ModuleType


def import_bare(name: str) -> ModuleType:
    """A package without its ``__init__``, from the first folder that has it; its modules import as ever."""
    package = ModuleType(name)
    paths = [Path(folder, *name.split(".")) for folder in sys.path]
    package.__path__ = [str(path) for path in paths if path.is_dir()][:1]
    sys.modules[name] = package
    return package


import_bare("megatron.bridge")
