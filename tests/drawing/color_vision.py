"""How colours look to people with a colour-vision deficiency (Machado, Oliveira and Fernandes 2009, severity 1.0)."""

import numpy as np

from pipeplan.drawing.theme import LAB_FROM_LMS, LMS_FROM_RGB, linear_rgb
from pipeplan.model import Floats

VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def oklab(rgb: Floats) -> Floats:
    """OKLab coordinates of linear RGB, shape (3,); their Euclidean distance is the perceived difference."""
    lab: Floats = LAB_FROM_LMS @ np.cbrt(LMS_FROM_RGB @ np.clip(rgb, 0.0, 1.0))
    return lab


def distance(one: str, other: str, vision: str) -> float:
    """The OKLab distance of two colours as seen with a kind of vision; about 0.02 is just noticeable."""
    seen = [oklab(VISION[vision] @ linear_rgb(color)) for color in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))
