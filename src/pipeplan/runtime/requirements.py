"""Is PyTorch here, and is it a version whose private parts we know?"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from pipeplan.errors import InputError, MissingExtraError
from pipeplan.formats import TORCH_RELEASES

RUNTIME_VERSIONS = TORCH_RELEASES
"""Versions whose pipeline runtime this package loads schedules into and reads schedules from."""

BACKWARD_VERSIONS = ("2.11", "2.12", *TORCH_RELEASES)
"""Versions whose split backward (input gradients apart from weight gradients) this package measures."""


def require_torch(known: tuple[str, ...] = RUNTIME_VERSIONS, *, what: str = "running schedules") -> str:
    """Return the installed version of PyTorch.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    InputError
        If it is a version whose private parts are not known here.
    """
    try:
        installed = version("torch")
    except PackageNotFoundError:
        raise MissingExtraError("pytorch", "torch") from None
    if ".".join(installed.split(".")[:2]) not in known:
        raise InputError(
            f"{what} uses private parts of PyTorch's pipelining that differ between versions: known are "
            f"{', '.join(known)}, installed is {installed}; pip install 'pipeplan[pytorch]'"
        )
    return installed
