"""What the processes of a run are asked, and what they answer."""

from dataclasses import dataclass

import torch

LAYERS = 12
"""Of the model."""


@dataclass(frozen=True)
class Step:
    """What a step is trained with.

    ``words`` are torchtitan's flags, ``config`` is the function of ``small`` that they change, ``python`` the text of a
    function ``scheduled`` that changes it then, ``folder`` the place that files are named from.
    """

    words: tuple[str, ...]
    folder: str
    config: str = "cross_entropy"
    python: str = ""


@dataclass(frozen=True)
class Trained:
    """What a rank had after the step: gradients by name (None: there was none), and its ops as PyTorch runs them."""

    gradients: dict[str, torch.Tensor | None]
    order: str
