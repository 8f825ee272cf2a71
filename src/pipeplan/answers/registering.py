"""Registration of strategies, formats, trainers, models and GPUs at run time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from pipeplan.answers.outputs import built_in_formats
from pipeplan.formats import Format, formats
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.extensions import extensions, loaded
from pipeplan.foundation.registry import Registry
from pipeplan.model import shortened
from pipeplan.strategies import STRATEGIES, Strategy
from pipeplan.trainers import TRAINERS, Trainer


class Named(Protocol):
    """A plugin of an extension, such as a model or a GPU."""

    @property
    def name(self) -> str:
        """Name under which it is registered."""


Plugin = Strategy | Format | Trainer | Named
"""Everything that :func:`pipeplan.register` and the entry points of a package add."""


def register(*plugins: Plugin) -> None:
    """Add strategies, formats, trainers, models or GPUs to this process, by their own names.

    They take part wherever the built-in ones do: in :func:`pipeplan.compare`, :func:`pipeplan.schedules`, exports, files,
    plans and the command line of this process. Registering another one under the same name replaces the first.

    A package declares its plugins as entry points of the groups ``pipeplan.strategies``, ``pipeplan.formats``,
    ``pipeplan.trainers``, ``pipeplan.models`` and ``pipeplan.gpus``, so that they are available wherever it is installed.

    Parameters
    ----------
    *plugins
        A :class:`pipeplan.strategies.Strategy`, :class:`pipeplan.formats.Format`, :class:`pipeplan.trainers.Trainer`;
        a ``ModelShape`` or ``Preset`` of ``pipeplan.extensions.planning``.

    Raises
    ------
    InputError
        For a value of another type, and for a name that cannot be used or that a built-in one has.

    Examples
    --------
    >>> from dataclasses import replace
    >>> gpipe = pipeplan.schedules("gpipe")["gpipe"]
    >>> pipeplan.register(replace(gpipe, name="mine", aliases=()))  # doctest: +SKIP
    >>> pipeplan.simulate("mine", ranks=2, microbatches=2).makespan  # doctest: +SKIP
    """
    registries: tuple[Registry[Any], ...] = (STRATEGIES, formats(), TRAINERS, *_of_extensions())
    for plugin in plugins:
        registry = next((registry for registry in registries if isinstance(plugin, registry.kind)), None)
        if registry is None:
            kinds = ", ".join(registry.kind.__name__ for registry in registries)
            raise InputError(f"cannot register {shortened(repr(plugin), 60)}: expected one of {kinds}")
        if isinstance(plugin, Format) and plugin.name in built_in_formats():
            raise InputError(f"cannot register the format '{plugin.name}': it is built in; choose another name")
        registry.add(plugin)


def _of_extensions() -> Iterator[Registry[Any]]:
    """Yield the registries that extensions register."""
    for extension in extensions():
        yield from map(loaded, extension.registries)
