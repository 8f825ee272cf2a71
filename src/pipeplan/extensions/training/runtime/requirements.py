"""Check that PyTorch is installed, in a version whose private parts pipeplan supports."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from pipeplan.formats import TORCH_RELEASES
from pipeplan.foundation.errors import InputError, MissingExtraError, how_to_install

RUNTIME_VERSIONS = TORCH_RELEASES
"""Supported versions of PyTorch's pipeline runtime."""

BACKWARD_VERSIONS = ("2.11", "2.12", *TORCH_RELEASES)
"""Versions whose split backward (input gradients apart from weight gradients) can be measured."""


def require_torch(supported: tuple[str, ...] = RUNTIME_VERSIONS, *, what: str = "running schedules") -> str:
    """Return the installed version of PyTorch.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    InputError
        If its version is not supported.
    """
    try:
        installed = version("torch")
    except PackageNotFoundError:
        raise MissingExtraError("pytorch", "torch") from None
    if ".".join(installed.split(".")[:2]) not in supported:
        raise InputError(
            f"unsupported PyTorch {installed}: {what} uses private parts of its pipelining, and supports "
            f"{', '.join(supported)}; {how_to_install('pytorch')}"
        )
    return installed
