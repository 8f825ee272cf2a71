"""Workbench for pipeline-parallel training schedules: generate, simulate, search, draw, run and compare them.

>>> import pipeplan
>>> pipeplan.simulate("1f1b", ranks=4, microbatches=8).timeline.bubble.over_ideal
0.375

Each command of the shell is the function of the same name, with the same options. Its answer can be saved (``save(path)``),
printed (``print()``), shown in a notebook, and converted to a dictionary or a data frame (``to_dict()``, ``to_frame()``).
Names are loaded on first use, so that importing pipeplan is fast.

Its public submodules are for code that builds on pipeplan: ``costs``, ``formats``, ``model``, ``passes``, ``runtime``,
``strategies``, ``testing`` and ``trainers``. What belongs to an extension is imported from it, such as
``pipeplan.extensions.planning.hardware``; errors are in ``pipeplan.foundation.errors``.
"""

from importlib import import_module
from importlib.util import find_spec

from pipeplan.foundation.lazy import lazy_names

__version__ = "0.1.0"

_SUBMODULES = ("costs", "formats", "model", "passes", "runtime", "strategies", "testing", "trainers")
_HOMES = {
    "answers.answers": "save",
    "answers.checking": "Verdict check",
    "answers.comparing.compare": "compare",
    "answers.comparing.comparison": "Comparison",
    "answers.explaining.explanation": "Explanation explain",
    "answers.exporting": "Export export",
    "answers.listing": "machines register schedules",
    "answers.simulating.result": "Result",
    "answers.simulating.simulate": "simulate",
    "answers.sources": "read_schedule read_timeline",
    "answers.sweeping": "Study sweep",
    "costs": "Costs Settings",
    "formats": "Training",
    "foundation.errors": "PipeplanError",
    "model": "Kind Op Placement Schedule Timeline",
}
_core_names, _core_name, _ = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    """Load a public name or submodule on first use; extensions register those that they add.

    Raises MissingExtensionError, which is an AttributeError, for another name where an extension is not installed.
    """
    if name in _core_names or (name.startswith("_") and name != "__all__"):
        return _core_name(name)
    if find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    from pipeplan.foundation.extensions import public_name, public_names

    if name == "__all__":
        return sorted([*_core_names, *public_names()])
    value = globals()[name] = public_name(name)
    return value


def __dir__() -> list[str]:
    """Return what the module holds, and all that can be loaded."""
    return sorted({*globals(), *_SUBMODULES, *__getattr__("__all__")})  # type: ignore[misc]
