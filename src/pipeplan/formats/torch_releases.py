"""The releases of PyTorch whose pipeline runtime is known, and in what their schedules differ."""

from __future__ import annotations

import re

from pipeplan.errors import InputError
from pipeplan.model import one_line

TORCH_RELEASES = ("2.13", "2.14", "2.15")
"""Releases whose pipeline runtime is known, the oldest first."""

_FIRST_WITH_WAITS = (2, 15)


def torch_release(name: str | None = None) -> str:
    """Return the minor release of PyTorch that a schedule is for.

    Parameters
    ----------
    name
        As the user writes it, such as ``2.14`` or ``2.15.0+cpu``. None: that of the installed PyTorch, which need not be
        known; without one the newest known release.

    Raises
    ------
    InputError
        For a name that is not one of a known release.
    """
    if name is None:
        return _installed() or TORCH_RELEASES[-1]
    release = _minor(name)
    if release not in TORCH_RELEASES:
        raise InputError(
            f"unknown release of PyTorch {one_line(name)!r}: expected one of {', '.join(TORCH_RELEASES)}",
            field="trainer_version",
        )
    return release


def has_waits(release: str) -> bool:
    """Return whether the runtime of a release requires an op that waits for every SEND and every REDUCE_GRAD.

    Earlier releases refuse such ops.
    """
    major, minor = map(int, release.split("."))
    return (major, minor) >= _FIRST_WITH_WAITS


def _installed() -> str:
    """Return the minor release of the installed PyTorch; empty without one."""
    from importlib.metadata import PackageNotFoundError, version  # takes longer to load than what most commands do

    try:
        return _minor(version("torch"))
    except PackageNotFoundError:
        return ""


def _minor(name: str) -> str:
    """Return ``2.15`` of ``2.15.0+cpu``; empty for what is not a version."""
    match = re.fullmatch(r"([0-9]{1,3}\.[0-9]{1,3})((\.|a|b|rc|\+)[.+0-9a-z]*)?", name)
    return match[1] if match else ""
