"""Registries: everything that has a name, from pipeplan itself, from ``register`` and from installed packages.

A package extends pipeplan by entry points, one for each strategy, format, trainer, model or GPU::

    [project.entry-points."pipeplan.strategies"]
    lifo = "my_package.schedules:LIFO"

The entry points of installed packages are read only if a name is not known without them, or if everything is listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from warnings import warn

from pipeplan.foundation.errors import InputError, PipeplanError, PluginError, UnknownNameError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Item = TypeVar("Item")

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")


class PluginWarning(UserWarning):
    """An entry point was left out of a list because it cannot be loaded."""


class Registry(Mapping[str, Item], Generic[Item]):
    """Items by name: the built-in ones, those that were registered, and those of installed packages, in this order.

    Iteration and ``len`` list all of them, and so load every plugin. A look-up loads a plugin only for a name that neither
    a built-in nor a registered item has.

    Parameters
    ----------
    group
        Group of entry points.
    kind
        Type of the values that are registered.
    noun
        Noun of an item in messages.
    built_in
        Returns the built-in items in the order of lists; called once, on the first look-up.
    names
        Returns the names of an item: its own, then its aliases.
    plain
        Returns the form of a name in which spellings are compared.
    item
        Returns the item of a registered value, if the two differ.
    """

    def __init__(
        self,
        group: str,
        kind: type[Any],
        noun: str,
        built_in: Callable[[], Iterable[Item]],
        *,
        names: Callable[[Item], tuple[str, ...]],
        plain: Callable[[str], str] = str.lower,
        item: Callable[[Any], Item] = lambda value: value,
    ) -> None:
        self.group, self.kind, self.noun = group, kind, noun
        self._make, self._names, self._plain, self._item = built_in, names, plain, item
        self._loaded: dict[str, PluginError | None] = {}

    @cached_property
    def built_in(self) -> Mapping[str, Item]:
        """The items that come with pipeplan, by name."""
        return {self._names(item)[0]: item for item in self._make()}

    @cached_property
    def known(self) -> dict[str, Item]:
        """The items that are known without loading plugins: the built-in and the registered ones, and loaded plugins."""
        return dict(self.built_in)

    @cached_property
    def _spellings(self) -> dict[str, Item]:
        """Every item by the plain form of each of its names; an item's own name wins over another one's alias."""
        items = list(self.known.values())
        aliases = {self._plain(name): item for item in reversed(items) for name in self._names(item)}
        return aliases | {self._plain(self._names(item)[0]): item for item in items}

    @cached_property
    def _entry_points(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # takes tens of milliseconds

        return {self._plain(entry.name): entry for entry in entry_points(group=self.group)}

    # --- look-up -------------------------------------------------------------------------------------------------------

    def find(self, name: str) -> Item | None:
        """Return the item with this name or alias, in any spelling; None if there is none.

        Raises PluginError if the plugin of this name cannot be loaded.
        """
        if not self.knows(name) and (error := self._loaded_plugin(self._plain(name))) is not None:
            raise error
        if not self.knows(name):
            self._load_all()
        return self._spellings.get(self._plain(name))

    def knows(self, name: str) -> bool:
        """Return True if an item has this name or alias without loading a plugin."""
        return self._plain(name) in self._spellings

    def required(self, name: str, *, field: str = "") -> Item:
        """Return the item with this name or alias. Raises UnknownNameError, which suggests the most similar name."""
        item = self.find(name)
        if item is None:
            raise UnknownNameError(self.noun, name, self, field=field)
        return item

    def matching(self, test: Callable[[Item], bool]) -> list[Item]:
        """Return the items that pass a test; plugins are loaded only if no other item does."""
        return [item for item in self.known.values() if test(item)] or [item for item in self.values() if test(item)]

    def __getitem__(self, name: str) -> Item:
        if name not in self.known:
            self.find(name)
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        self._load_all()
        return iter(self.known)

    def __len__(self) -> int:
        self._load_all()
        return len(self.known)

    def __repr__(self) -> str:
        return f"<Registry of {self.group}: {', '.join(self.known)}>"

    # --- additions -----------------------------------------------------------------------------------------------------

    def add(self, value: Any) -> None:
        """Register a value for this process, in place of one that was registered under its name before."""
        if not isinstance(value, self.kind):
            raise InputError(f"expected a {self.kind.__name__}, not {type(value).__name__}")
        item = self._item(value)
        name, *aliases = self._names(item)
        if not _NAME.fullmatch(name):
            raise InputError(f"invalid name '{name}' of a {self.noun}: expected letters, digits and -_.+")
        for other in (name, *aliases):
            if self._plain(other) in self._built_in_spellings:
                raise InputError(
                    f"cannot register the {self.noun} '{name}': '{other}' is a built-in {self.noun}; choose another name"
                )
        for other in [other for other in self.known if self._plain(other) == self._plain(name)]:
            del self.known[other]
        self.known[name] = item
        self.__dict__.pop("_spellings", None)

    def remove(self, name: str) -> None:
        """Remove a registered item. Raises UnknownNameError if there is none of this name."""
        if name in self.built_in or name not in self.known:
            raise UnknownNameError(f"registered {self.noun}", name, self.known.keys() - self.built_in.keys())
        del self.known[name]
        self.__dict__.pop("_spellings", None)

    @cached_property
    def _built_in_spellings(self) -> set[str]:
        return {self._plain(name) for item in self.built_in.values() for name in self._names(item)}

    def _load_all(self) -> None:
        for plain in sorted(self._entry_points.keys() - self._loaded.keys()):
            if (error := self._loaded_plugin(plain)) is not None:
                warn(str(error), PluginWarning, stacklevel=3)

    def _loaded_plugin(self, plain: str) -> PluginError | None:
        """Load the plugin of this name, if there is one that was not loaded before. Return the error if it has failed."""
        if plain in self._entry_points and plain not in self._loaded:
            self._loaded[plain] = None  # A plugin may look up names while it is loaded.
            self._loaded[plain] = self._load(self._entry_points[plain])
        return self._loaded.get(plain)

    def _load(self, entry: EntryPoint) -> PluginError | None:
        """Add what an entry point names: an item, or several. An item that was registered at run time stays."""
        package = "" if entry.dist is None else f" of the package {entry.dist.name}"
        try:
            value: Any = entry.load()
            registered = self.known.keys() - self.built_in.keys()
            for one in [value] if isinstance(value, self.kind) else value:
                if not isinstance(one, self.kind) or self._names(self._item(one))[0] not in registered:
                    self.add(one)
        except PipeplanError as error:
            return PluginError(f"the plugin '{entry.name}'{package} is invalid: {error}")
        except Exception as error:  # a plugin is code of others
            return PluginError(
                f"the plugin '{entry.name}'{package} cannot be loaded from {entry.value} "
                f"({type(error).__name__}: {error}); upgrade or uninstall it"
            )
        return None
