"""Colors by perceived lightness, chroma and hue, and the contrast between two colors.

OKLab is Ottosson's (2020, "A perceptual color space for image processing"); contrast is that of WCAG 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeplan.model import Floats

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
    """Return the contrast ratio of two colors, 1 to 21."""
    dark, light = sorted(float(_LUMINANCE @ linear_rgb(color)) for color in (one, other))
    return (light + 0.05) / (dark + 0.05)


@lru_cache(maxsize=1 << 12)
def readable_on(background: str) -> str:
    """Return near-black or white, whichever has more contrast to a background."""
    return max("#101418", "#ffffff", key=lambda ink: contrast(ink, background))
