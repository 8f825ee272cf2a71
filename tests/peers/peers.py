"""The peers: what each is called, how it installs, and whether it is here."""

import json
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

REASONS = Path(sys.prefix) / "peers-not-installed.json"
ELSEWHERE = "peers are tested in an environment of their own: `make peers`"


@dataclass(frozen=True, slots=True)
class Peer:
    """A package that the tests in the folder of its name run beside ours.

    ``module`` is imported to prove that it installed, after the folder's own package, which may hold stand-ins. The package
    itself installs without what it depends on, most of which its schedules do not need; ``beside`` is what they do need.
    ``built`` says that it comes as a source that is built with what is installed already, ``torch`` the least PyTorch for
    which its tests are.
    """

    name: str
    package: str
    module: str
    beside: tuple[str, ...] = ()
    built: bool = False
    torch: tuple[int, int] = (2, 13)


TITAN = ("spmd_types", "tyro", "typeguard", "docstring_parser", "einops")
TITAN_DATA = ("datasets", "safetensors", "tensorboard", "tokenizers", "torch_checkpointing", "torchdata")
"""What its whole Trainer imports to load data, log and save, though no test does."""
PEERS = (
    Peer("torchtitan", "torchtitan", "torchtitan.models.llama3", TITAN),
    Peer("torchtitan_trainer", "torchtitan", "torchtitan.trainer", (*TITAN, *TITAN_DATA), torch=(2, 14)),
    Peer("megatron", "megatron-core", "megatron.core.pipeline_parallel.schedules", ("einops",)),
    Peer("bridge", "megatron-bridge", "megatron.bridge.package_info"),
    Peer(
        "automodel",
        "nemo-automodel",
        "nemo_automodel.components.distributed.pipelining.autopipeline",
        ("pydantic", "tqdm", "transformers"),
    ),
    Peer(
        "deepspeed",
        "deepspeed",
        "deepspeed.runtime.pipe.engine",
        ("einops", "hjson", "msgpack", "ninja", "psutil", "py-cpuinfo", "pydantic", "tqdm"),
        built=True,
    ),
    Peer("colossalai", "colossalai", "colossalai.pipeline.schedule.v_schedule", ("psutil", "tqdm"), built=True),
    Peer("dualpipe", "dualpipe", "dualpipe", built=True),
    Peer("elf", "elf-pipeline", "elf", ("psutil", "dill")),
    Peer(
        "transformers",
        "transformers",
        "transformers",
        ("huggingface_hub", "regex", "safetensors", "tokenizers", "typer"),
    ),
)


def version(peer: Peer) -> str | None:
    """The release of a peer that is installed in this environment, None without one."""
    try:
        return metadata.version(peer.package)
    except metadata.PackageNotFoundError:
        return None


def why_absent(peer: Peer) -> str | None:
    """Why a peer's tests cannot run here, one sentence; None where they can."""
    reasons = not_installed()
    if peer.name in reasons:
        return f"{peer.name}: not installed: {reasons[peer.name]}"
    if version(peer) is None:
        return f"{peer.name}: not installed" if reasons else ELSEWHERE
    if torch_release() < peer.torch:
        return f"{peer.name}: {needed_torch(peer)}"
    return None


def needed_torch(peer: Peer) -> str:
    """Which PyTorch a peer's tests need, and where they run with it."""
    return f"needs PyTorch {peer.torch[0]}.{peer.torch[1]}: `make peers-trainer`"


def failed_to_install(peer: Peer) -> bool:
    """Whether a peer should be here and is not."""
    return peer.name in not_installed()


def not_installed() -> dict[str, str]:
    """The reasons of the peers that were to be installed in this environment and were not, by name."""
    reasons: dict[str, str] = json.loads(REASONS.read_text()) if REASONS.exists() else {}
    return reasons


def torch_release() -> tuple[int, int]:
    """Major and minor number of the PyTorch that is installed, zeros without one."""
    try:
        major, minor = metadata.version("torch").split(".")[:2]
    except metadata.PackageNotFoundError:
        return 0, 0
    return int(major), int(minor)
