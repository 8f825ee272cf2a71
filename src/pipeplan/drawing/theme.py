"""The theme, light and dark: colors of kinds, chunks, directions and reasons for idle time, and their arithmetic.

A kind is a hue, and a chunk or a direction a lightness of it: chunk 0 is the darkest, and the second copy of a
bidirectional schedule is lighter than the first. The ramps were chosen so that no shade of one kind resembles a shade
of another one to people with protanopia, deuteranopia or tritanopia; a test computes the distances. Hues follow Okabe
and Ito (2008, "Color universal design"): blue, orange, yellow, bluish green, reddish purple.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeplan.drawing.sizes import ThemeName
from pipeplan.drawing.view import Ratios, View
from pipeplan.foundation.errors import UnknownNameError
from pipeplan.model import KIND_WORDS, REASON_WORDS, Floats, Kind, Reason

MOST_SHADES = 256
"""Maximum number of steps of one ramp; a screen does not show more different values of its lightness."""

LMS_FROM_RGB = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
LAB_FROM_LMS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
"""OKLab's matrices, Ottosson (2020, "A perceptual color space for image processing"): linear RGB to cone responses, and
their cube roots to lightness and two opponent axes."""

_RGB_FROM_LMS = np.linalg.inv(LMS_FROM_RGB)
_LMS_FROM_LAB = np.linalg.inv(LAB_FROM_LMS)
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


@dataclass(frozen=True, slots=True)
class Ramp:
    """One hue from dark to light: lightness ``dark`` to ``light`` (0 to 1), chroma (0 to about 0.3), hue in degrees."""

    dark: float
    light: float
    chroma: float
    hue: float

    def shades(self, count: int) -> tuple[str, ...]:
        """Return ``count`` shades at equal steps of lightness, dark first; a single one is in the middle.

        Beyond ``MOST_SHADES``, neighbors share a shade.
        """
        return _shades(self, count)


@lru_cache(maxsize=64)
def _shades(ramp: Ramp, count: int) -> tuple[str, ...]:
    steps = min(count, MOST_SHADES)
    lightness = np.linspace(ramp.dark, ramp.light, steps) if steps > 1 else [(ramp.dark + ramp.light) / 2]
    distinct = [oklch(float(value), ramp.chroma, ramp.hue) for value in lightness]
    return tuple(distinct[place * steps // count] for place in range(count))


def oklch(lightness: float, chroma: float, hue: float) -> str:
    """Return the sRGB color ``#rrggbb`` of a lightness, chroma and hue; chroma is reduced if the color is not in sRGB."""
    direction = np.array([0.0, np.cos(np.radians(hue)), np.sin(np.radians(hue))])
    for reduced in np.linspace(chroma, 0.0, 65):
        rgb = _RGB_FROM_LMS @ (_LMS_FROM_LAB @ (direction * reduced + [lightness, 0.0, 0.0])) ** 3
        if rgb.min() >= -1e-4 and rgb.max() <= 1 + 1e-4:
            break
    rgb = np.clip(rgb, 0.0, 1.0)
    encoded = np.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(float(value) * 255):02x}" for value in encoded)


def mixed(one: str, other: str, share: float) -> str:
    """Return a color between two: ``one`` for share 0, ``other`` for share 1."""
    pairs = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(begin + share * (end - begin)):02x}" for begin, end in pairs)


def linear_rgb(color: str) -> Floats:
    """Return the linear red, green and blue of ``#rrggbb``, each 0 to 1; shape (3,)."""
    encoded = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear: Floats = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return linear


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors by WCAG 2.2, 1 to 21."""
    dark, light = sorted(float(_LUMINANCE @ linear_rgb(color)) for color in (one, other))
    return (light + 0.05) / (dark + 0.05)


@lru_cache(maxsize=1 << 12)
def readable_on(background: str) -> str:
    """Return near-black or white, whichever has more contrast to a background."""
    return max("#101418", "#ffffff", key=lambda ink: contrast(ink, background))


Like = Kind | str
"""Kind of op or reason for idle time with the same color as a part of a bar, so that colors are consistent across a page."""


@dataclass(frozen=True, slots=True)
class Theme:
    """All colors of a picture, as ``#rrggbb``.

    Attributes
    ----------
    name
        ``light`` or ``dark``.
    page, lane, grid, text, faint
        Page, idle rank, lines, text, and less important text or curves.
    kinds
        Ramp of each kind; chunks and directions are steps along it.
    reasons
        Color of each reason for idle time.
    curves
        Colors of the selected memory curves.
    limit
        Memory limit, and other highlights.
    ratios
        Scale of ratios: its lower end, 1, and its upper end.
    """

    name: ThemeName
    page: str
    lane: str
    grid: str
    text: str
    faint: str
    kinds: dict[Kind, Ramp]
    reasons: dict[str, str]
    curves: tuple[str, ...]
    limit: str
    ratios: tuple[str, str, str]

    def shades(self, kind: Kind, count: int) -> tuple[str, ...]:
        """Return the colors of a kind for ``count`` (copy, chunk) pairs: those of copy 0 first, each from chunk 0."""
        return self.kinds[kind].shades(count)

    def part(self, like: Like) -> str:
        """Return the color of a part of a bar."""
        return self.shades(like, 1)[0] if isinstance(like, Kind) else self.reasons[like]

    def ratio(self, share: float) -> str:
        """Return a color on a scale of ratios: -1 is its lower end, 0 its middle, 1 its upper end."""
        low, middle, high = self.ratios
        return mixed(middle, high if share > 0 else low, abs(share))

    def to_json_dict(self, count: int) -> dict[str, Any]:
        """Return the colors for a page, with ``count`` shades per kind.

        ``kinds[NAME]`` is ``{"title", "fill": [...], "ink": [...]}``; shade ``copy * chunks + chunk`` of a bar's kind
        is its color, and the ink at the same index is readable on it.
        """
        shades = {kind: self.shades(kind, count) for kind in Kind}
        return {
            "name": self.name,
            **{part: getattr(self, part) for part in ("page", "lane", "grid", "text", "faint", "limit")},
            "kinds": {
                kind.name: {"title": KIND_WORDS[kind], "fill": list(fills), "ink": [readable_on(c) for c in fills]}
                for kind, fills in shades.items()
            },
            "reasons": {
                reason.key: {"title": REASON_WORDS[reason], "fill": self.reasons[reason.key]} for reason in Reason
            },
            "curves": list(self.curves),
        }


_FORWARD_MESSAGES = (Kind.SEND_F, Kind.RECV_F, Kind.WAIT_SEND_F)
_BACKWARD_MESSAGES = (Kind.SEND_B, Kind.RECV_B, Kind.WAIT_SEND_B)


def _ramps(shift: float) -> dict[Kind, Ramp]:
    """Return the kinds' ramps; ``shift`` lightens the darkest ones, so that they stand out from a dark page."""
    messages = {kind: Ramp(0.50 + shift, 0.50 + shift, 0.02, 250) for kind in _FORWARD_MESSAGES}
    messages |= {kind: Ramp(0.66 + shift, 0.66 + shift, 0.02, 250) for kind in _BACKWARD_MESSAGES}
    parameters = {kind: Ramp(0.74, 0.74, 0.06, 130) for kind in Kind if kind.is_stage_wide}
    parameters |= {kind: Ramp(0.68, 0.68, 0.08, 100) for kind in (Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD)}
    copies = {
        Kind.OFFLOAD: Ramp(0.37 + shift / 2, 0.37 + shift / 2, 0.12, 150),
        Kind.RELOAD: Ramp(0.85, 0.85, 0.11, 130),
    }
    compute = {
        Kind.F: Ramp(0.43 + shift, 0.60 + shift, 0.17, 260),
        Kind.B: Ramp(0.61, 0.755, 0.15, 46),
        Kind.I: Ramp(0.82, 0.93, 0.17, 101),
        Kind.W: Ramp(0.74, 0.87, 0.11, 178),
        Kind.R: Ramp(0.43 + shift, 0.55 + shift, 0.12, 330),
    }
    return compute | messages | parameters | copies


LIGHT = Theme(
    name="light",
    page="#ffffff",
    lane="#e6e9ee",
    grid="#c4c9d0",
    text="#1b1f24",
    faint="#5f6873",
    kinds=_ramps(0.0),
    reasons={
        "start-up": "#c9cdd3",
        "compute": "#7fb2f0",
        "transfer": "#a3236e",
        "imbalance": "#e08a2e",
        "memory": "#5a3a1e",
        "drain": "#7d8590",
        "overhead": "#4830d8",
        "offload": "#33854a",
        "reload": "#67ee8c",
        "queue": "#190230",
        "unshard": "#bc60e1",
        "reduce": "#caa594",
    },
    curves=("#1f4fb0", "#c8622f", "#00897b", "#7a3d80"),
    limit="#c1121f",
    ratios=("#0b5394", "#d0d5dc", "#b8400e"),
)
"""Dark on white: paper, slides, the default."""

DARK = Theme(
    name="dark",
    page="#14171b",
    lane="#2a3037",
    grid="#4a525c",
    text="#e8eaed",
    faint="#a0a8b3",
    kinds=_ramps(0.06),
    reasons={
        "start-up": "#6d7680",
        "compute": "#9cc4ff",
        "transfer": "#f27fc0",
        "imbalance": "#c8701a",
        "memory": "#f3e3c3",
        "drain": "#454c55",
        "overhead": "#9030a8",
        "offload": "#05a97a",
        "reload": "#a2bb40",
        "queue": "#b26df7",
        "unshard": "#a1fa68",
        "reduce": "#6b3900",
    },
    curves=("#5c8df0", "#e8752f", "#8ee6d8", "#a35fab"),
    limit="#ffe08a",
    ratios=("#6fb7ff", "#474f59", "#ff9d57"),
)
"""Light on near-black."""

THEMES: dict[str, Theme] = {theme.name: theme for theme in (LIGHT, DARK)}


def theme_named(name: str) -> Theme:
    """Return the light or the dark theme. Raises UnknownNameError if the name is another one."""
    if name not in THEMES:
        raise UnknownNameError("theme", name, THEMES)
    return THEMES[name]


TIME_PARTS: Mapping[str, Like] = MappingProxyType(
    {
        "compute": Kind.F,
        "recompute": Kind.R,
        "tensor": Kind.W,
        "context": Kind.UNSHARD,
        "expert": Kind.B,
        "bubble": "start-up",
        "overhead": "overhead",
        "data": "transfer",
        "optimizer": "memory",
    }
)
"""Colors of the parts of a step's time, by the names of :class:`pipeplan.extensions.planning.StepTime`."""

MEMORY_PARTS: Mapping[str, Like] = MappingProxyType(
    {
        "weights": Kind.F,
        "gradients": Kind.B,
        "optimizer": Kind.I,
        "activations": Kind.W,
        "transient": Kind.R,
        "gathered": "transfer",
        "buffers": "start-up",
    }
)
"""Colors of the parts of a GPU's memory, by the names of :class:`pipeplan.extensions.planning.GpuMemory`."""


STEPS = 16
"""Number of steps from the middle of a scale of ratios to either end."""

_NONE = 2 * STEPS + 1
"""Code of a bar without a ratio."""


def codes_of(view: View) -> NDArray[np.int64]:
    """Return a code for each bar's color, shape (bars,); :func:`fill_of` returns the color of a code."""
    if view.ratios is None:
        return kind_codes(view)
    has_ratio = view.ratios.values > 0
    share = np.log(np.where(has_ratio, view.ratios.values, 1.0)) / np.log(view.ratios.reach)
    steps = np.rint(STEPS * (1 + np.clip(share, -1, 1))).astype(np.int64)
    return np.where(has_ratio, steps, _NONE)


def fill_of(view: View, theme: Theme, code: int) -> str:
    """Return the color of a code."""
    if view.ratios is not None:
        return theme.lane if code == _NONE else theme.ratio(code / STEPS - 1)
    return kind_fill(view, theme, code)


def kind_codes(view: View) -> NDArray[np.int64]:
    """Return ``kind * shades + shade`` of each bar, shape (bars,), even if the view has ratios."""
    return view.bars.kind.astype(np.int64) * (view.copies * view.chunks) + view.shade


def kind_fill(view: View, theme: Theme, code: int) -> str:
    """Return the color of a code of :func:`kind_codes`."""
    shades = view.copies * view.chunks
    return theme.shades(Kind(code // shades), shades)[code % shades]


def colored(view: View, theme: Theme) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Return each color of a view with its bars; messages come last, so that they are on top."""
    code = codes_of(view)
    order = np.argsort(code, kind="stable")
    codes, first = np.unique(code[order], return_index=True)
    groups: dict[str, list[NDArray[np.intp]]] = {}
    for value, chosen in zip(codes.tolist(), np.split(order, first[1:]), strict=True):
        groups.setdefault(fill_of(view, theme, value), []).append(chosen)
    return ((fill, np.concatenate(parts)) for fill, parts in groups.items())


def scale_fills(theme: Theme) -> tuple[str, ...]:
    """Return the colors of a scale of ratios, from its lower end to its upper end."""
    return tuple(theme.ratio(step / STEPS - 1) for step in range(0, 2 * STEPS + 1, 2))


def scale_title(ratios: Ratios) -> str:
    """Return the legend title of a ratio scale: what it shows, and the ratios at both ends."""
    below, above = ratios.ends
    return f"{ratios.title}: {below} ({1 / ratios.reach:.2f}) to {above} ({ratios.reach:.2f})"
