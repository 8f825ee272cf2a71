"""The fields of a model hub's config.json, each of the type that it must have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeplan.errors import InputError


@dataclass(frozen=True, slots=True)
class HubFields:
    """A config.json's fields with what its architecture takes for those that it leaves out.

    Attributes
    ----------
    architecture
        For messages.
    given
        As the file has them.
    defaults
        Of the architecture, by field.
    """

    architecture: str
    given: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def value(self, field: str) -> Any:
        """A field, a part of one (``attn_config.kv_n_heads``), or its default; None where neither is there.

        A field that is null is null: only one that is left out has its default.
        """
        value: Any = self.given
        for part in field.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return self.defaults.get(field)
            value = value[part]
        return value

    def whole(self, field: str) -> int | None:
        """Return a whole number from 0 on, or None.

        Raises
        ------
        InputError
            For anything else.
        """
        value = self.value(field)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(field, "a whole number from 0 on")
        return value

    def needed(self, field: str) -> int:
        """Return a whole number that must be there.

        Raises
        ------
        InputError
            If it is not, or is none.
        """
        value = self.whole(field)
        if value is None:
            raise self.missing([field])
        return value

    def switch(self, field: str) -> bool:
        """Whether a field is true; one that is not there is false.

        Raises
        ------
        InputError
            If it is neither true nor false.
        """
        value = self.value(field)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.wrong(field, "true or false")
        return value

    def items(self, field: str) -> list[Any]:
        """Return a list; one that is not there is empty.

        Raises
        ------
        InputError
            If it is none.
        """
        value = self.value(field)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(field, "a list")
        return value

    def wrong(self, field: str, wanted: str) -> InputError:
        """The error for a field that is not as it must be."""
        shown = repr(self.value(field))
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        return InputError(f"{field} of a {self.architecture} config.json is {wanted}; it is {shown}", field=field)

    def missing(self, fields: list[str]) -> InputError:
        """Return the error for fields that are not there."""
        return InputError(f"this config.json of {self.architecture} lacks {', '.join(fields)}", field=fields[0])
