"""Process groups: of workers started by pipeplan, of the torchrun job that this process is in, and of a pipeline."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from pipeplan.foundation.errors import InputError


def in_job() -> bool:
    """Return whether torchrun, or a scheduler that sets the same variables, started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def choose_device(requested: str, ranks: int) -> Literal["cpu", "cuda"]:
    """Resolve the device ``auto``: ``cuda`` if every rank of this host gets its own GPU, else ``cpu``.

    Raises
    ------
    InputError
        If the device is unknown, or ``cuda`` is requested without enough GPUs.
    """
    if requested not in ("auto", "cpu", "cuda"):
        raise InputError(f"invalid device '{requested}': expected auto, cpu or cuda")
    local = int(os.environ.get("LOCAL_WORLD_SIZE", ranks)) if in_job() else ranks
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if requested == "cuda" and gpus < local:
        raise InputError(
            f"{local} ranks on this host need a GPU each, but it has {gpus}; use the device cpu, or fewer ranks"
        )
    return "cuda" if requested != "cpu" and gpus >= local else "cpu"


def local_device(device: str, rank: int) -> torch.device:
    """Return the device of this process; a GPU becomes the current one, ready for a backward."""
    if device == "cpu":
        return torch.device("cpu")
    chosen = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)))
    torch.cuda.set_device(chosen)
    ready_for_backward(chosen)
    return chosen


def ready_for_backward(device: torch.device) -> None:
    """Create the GPU's context in the thread in which autograd works on it.

    Without it, cuBLAS warns of a missing context if a matrix product is the thread's first op. A CPU needs nothing.
    """
    if device.type == "cuda":
        torch.ones((), device=device, requires_grad=True).mul(2.0).backward()


@contextmanager
def process_group(device: torch.device, ranks: int, *, timeout: float, store: Path | None = None) -> Iterator[int]:
    """Join the group of all ranks, and yield this process's rank.

    Parameters
    ----------
    device
        Device of this process: GPUs communicate by NCCL, CPUs by gloo.
    ranks
        Required number of processes.
    timeout
        Seconds after which waiting for another rank is an error.
    store
        File through which processes of one host find each other; None: the job's own address and port.

    Raises
    ------
    InputError
        If the job has a different number of processes, or its port is taken or cannot be reached.
    """
    # PyTorch logs a whole row of actions when an op fails; the error message names the op already.
    logging.getLogger("torch.distributed.pipelining").setLevel(logging.CRITICAL)
    ours = not dist.is_initialized()
    if ours:
        _join(device, ranks, timedelta(seconds=timeout), store)
    try:
        if dist.get_world_size() != ranks:
            raise InputError(_wrong_size(dist.get_world_size(), ranks))
        yield dist.get_rank()
    finally:
        if ours:
            dist.destroy_process_group()


def _join(device: torch.device, ranks: int, timeout: timedelta, store: Path | None) -> None:
    processes = int(os.environ["WORLD_SIZE"])
    if processes != ranks:
        raise InputError(_wrong_size(processes, ranks))
    options: dict[str, Any] = {"backend": "nccl" if device.type == "cuda" else "gloo", "timeout": timeout}
    # With the device known, NCCL connects now and not in the first message, which would be measured.
    if device.type == "cuda":
        options["device_id"] = device
    if store is not None:
        options |= {"store": dist.FileStore(str(store), ranks), "rank": int(os.environ["RANK"]), "world_size": ranks}
    try:
        dist.init_process_group(**options)
    except (dist.DistNetworkError, dist.DistStoreError, ValueError) as error:
        where = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"rank {os.environ['RANK']} cannot connect to the other ranks at {where} (port in use, or no other rank "
            f"there?): {reason}"
        ) from None


def _wrong_size(processes: int, ranks: int) -> str:
    return (
        f"the schedule has {ranks} ranks but the job has {processes} process(es); "
        f"start as many: torchrun --nproc-per-node {ranks} (times --nnodes)"
    )


def pipeline_group(group: dist.ProcessGroup | DeviceMesh | None) -> Any:
    """Return the process group of a pipeline; None: all processes.

    Raises
    ------
    InputError
        If there is none yet, this process is not in it, or a mesh has several dimensions.
    """
    if not dist.is_initialized():
        raise InputError("call torch.distributed.init_process_group() before making a Pipeline", field="group")
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise InputError(
                "group is a multi-dimensional mesh: pass the pipeline's submesh, such as mesh['pp']", field="group"
            )
        group = group.get_group()
    if group is not None and dist.get_rank(group) < 0:
        raise InputError(f"process {dist.get_rank()} is not in the pipeline's process group", field="group")
    return group
