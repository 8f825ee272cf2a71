"""The names of themes and sizes, which options need without the themes and sizes themselves."""

from __future__ import annotations

from typing import Literal

ThemeName = Literal["light", "dark"]
SizeName = Literal["slide", "page", "column"]
