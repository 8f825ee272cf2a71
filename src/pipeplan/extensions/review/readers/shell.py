"""Shell scripts and lists of arguments: the flags of the command that trains, and the GPUs of its launcher."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.keys import setting_of, switch_of
from pipeplan.extensions.review.readers.recipe_names import model_of_recipe
from pipeplan.extensions.review.readers.shell_state import OPEN, ShellState, Token
from pipeplan.extensions.review.readers.source import OTHER_JOBS, SourceText, phase_of
from pipeplan.extensions.review.settings import UNKNOWN
from pipeplan.extensions.review.stated import RawEntry, ReadSettings, is_known

_FLAG = re.compile(r"(--[A-Za-z][\w.\-]*)(?:=(.*))?", re.DOTALL)
_SHORT = re.compile(r"(-[nN](?=\d)|--?[A-Za-z][\w\-]*)(?:=?(.+))?", re.DOTALL)
_OVERRIDE = re.compile(r"[+~]{0,2}((?:[A-Za-z_]\w*\.)+\w+)=(.*)", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#SBATCH[ \t]+(--?[\w-]+?)[= \t]*(?:gpu:(?:[a-z]\w*:)?)?(\d+)\b", re.MULTILINE)
_POLICY = re.compile(r"activation-checkpoint:([\w-]+)")
"""Matches torchtitan's subcommand with the policy of activation checkpoints."""

_ENVIRONMENT = {
    "CUDA_DEVICE_MAX_CONNECTIONS": "cuda_device_max_connections",
    "PYTORCH_CUDA_ALLOC_CONF": "pytorch_cuda_alloc_conf",
    "PYTORCH_ALLOC_CONF": "pytorch_alloc_conf",
    "NVTE_CPU_OFFLOAD_V1": "nvte_cpu_offload_v1",
    "WORLD_SIZE": "world_size",
    "NGPU": "ngpu",
    "GPU_TYPE": "gpu_type",
    "NNODES": "nnodes",
    "NUM_NODES": "nnodes",
    "GPUS_PER_NODE": "nproc_per_node",
    "NPROC_PER_NODE": "nproc_per_node",
}
"""Variables that are settings themselves."""

_TASKS = {"-n": "world_size", "-np": "world_size", "--ntasks": "world_size"} | dict.fromkeys(
    ("--ntasks-per-node", "--npernode", "-ppn"), "nproc_per_node"
)
"""Flags that count tasks, which are ranks unless each of them starts a further launcher."""

_OF_PROGRAMS = {"--nodes": "nnodes", "--gpus-per-node": "nproc_per_node"}
_SLURM = {"-N": "nnodes", "--gres": "nproc_per_node", **_OF_PROGRAMS, **_TASKS}
_TORCHRUN = {"--nproc-per-node": "nproc_per_node", "--nnodes": "nnodes"}
_LAUNCHERS = {
    "torchrun": _TORCHRUN,
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "deepspeed": {"--num-gpus": "nproc_per_node", "--num-nodes": "nnodes"},
    "accelerate launch": {"--num-processes": "world_size", "--num-machines": "nnodes"},
    "ray start": {"--num-gpus": "nproc_per_node"},
    "srun": _SLURM,
    "mpirun": _TASKS,
    "mpiexec": _TASKS,
}
"""Flags of launchers with the setting that each means to this launcher."""

_PER_NODE = frozenset(
    {"torchrun", "torch.distributed.run", "torch.distributed.launch", "deepspeed", "accelerate launch"}
)
"""Launchers that start the ranks of a node themselves."""


@dataclass(frozen=True, slots=True)
class ShellReading:
    """Settings of a script, the files that it sources, and the words of the command that trains."""

    read: ReadSettings
    sourced: tuple[SourceText, ...]
    words: tuple[str, ...]


@dataclass(slots=True)
class _Command:
    """Settings of a command and of its launcher, and the number of those that a review knows."""

    text: str = ""
    launched: list[RawEntry] = field(default_factory=list)
    one_node: list[RawEntry] = field(default_factory=list)
    entries: list[RawEntry] = field(default_factory=list)
    starts: bool = False
    known: int = 0


def read_in_shell(text: str, file: str, trainer: str = "", folder: Path | None = None) -> ShellReading:
    """Return the settings of a script in the order of its commands; ``folder`` is that of the files that it sources."""
    state = ShellState(text, file, folder)
    commands = [_command(one.tokens, trainer, branch=one.branch) for one in state.commands]
    best = max(reversed(commands), key=lambda command: command.known, default=_Command())
    best = best if best.known else _Command()
    arguments = [entry for tokens in state.variables.values() for entry in _command(tokens, trainer).entries]
    variables = [entry for entry in arguments if is_known(entry.key, trainer)]
    # Otherwise the script only defines arguments, which another one passes on with more.
    whole = 0 < best.known >= sum(entry.raw is not UNKNOWN for entry in variables)
    starts = any(command.starts for command in commands)
    # A command beside the one that trains says where this runs unless it does so itself.
    alone = best.starts or any(_is_of_launcher(entry.key) for entry in best.entries)
    beside = [one for one in commands if one is not best and not (alone and one.starts)]
    entries = [entry for command in (*beside, best) for entry in command.one_node]
    entries += _environment(state, starts=starts)
    entries += _agreed([entry for command in beside for entry in command.launched])
    entries += [] if whole else variables
    tokens = [*state.variables.values(), *(one.tokens for one in state.commands)]
    entries += phase_of((token.text for several in tokens for token in several), best.text, file)
    entries += [*best.launched, *best.entries]
    flags = [entry.place for entry in best.entries if entry.place.key[:2] == "--" and not is_known(entry.key, trainer)]
    read = ReadSettings(entries=tuple(entries), whole=whole, others=(*state.unread, *flags))
    return ShellReading(read, tuple(state.sourced), tuple(best.text.split()))


def _is_of_launcher(key: str) -> bool:
    setting = setting_of(key)
    return setting is not None and setting.name in ("gpus", "nodes", "gpus_per_node")


def _agreed(entries: Sequence[RawEntry]) -> Iterator[RawEntry]:
    """Yield the settings of several launchers; one of which they differ is unknown."""
    for entry in entries:
        same = all(str(other.raw) == str(entry.raw) for other in entries if other.key == entry.key)
        yield entry if same else replace(entry, raw=UNKNOWN)


def _command(tokens: Sequence[Token], trainer: str, *, branch: bool = False) -> _Command:
    """Return the settings among the flags and overrides of a command, and those of its launcher."""
    command = _Command(" ".join(token.text for token in tokens))
    launcher, tasks = "", list[RawEntry]()
    for at, token in enumerate(tokens):
        name, following = token.text.rpartition("/")[2], tokens[at + 1].text if at + 1 < len(tokens) else ""
        if (name := name if name in _LAUNCHERS else f"{name} {following}") in _LAUNCHERS:
            launcher = name
            command.starts |= name in _PER_NODE
        elif token.text.endswith(".py") or token.text in ("-m", "--module", "bash", "--"):
            launcher = ""
        elif (flag := launcher and _SHORT.fullmatch(token.text)) and (
            key := _LAUNCHERS[launcher].get(_dashed(flag[1]), "")
        ):
            entry = _of_flag(key, flag, tokens, at)
            (tasks if _dashed(flag[1]) in _TASKS else command.launched).append(entry)
            if key == "nproc_per_node" and _LAUNCHERS[launcher] is _TORCHRUN:
                # Inserted behind the GPUs of a node if it is to be another number.
                place = replace(entry.place, key="--nnodes", start=entry.place.end)
                command.one_node = [RawEntry("nnodes", "1", place)]
        else:
            command.entries += _settings_of(tokens, at)
    if not command.starts:
        command.launched += (entry for entry in tasks if entry.raw != "1")
    if branch or any(entry.key == "nnodes" for entry in command.launched):
        command.one_node = []
    decided = (entry for entry in (*command.launched, *command.entries) if entry.raw is not UNKNOWN)
    command.known = sum(is_known(entry.key, trainer) for entry in decided)
    return command


def _dashed(flag: str) -> str:
    return flag.replace("_", "-")


def _settings_of(tokens: Sequence[Token], at: int) -> Iterator[RawEntry]:
    token = tokens[at]
    if policy := _POLICY.fullmatch(token.text):
        place = replace(token.place, key="activation-checkpoint", start=token.place.start + policy.start(1))
        yield RawEntry("activation_checkpoint.mode", policy[1], place)
    elif flag := _FLAG.fullmatch(token.text):
        entry = _of_flag(_OF_PROGRAMS.get(_dashed(flag[1]), flag[1]), flag, tokens, at)
        if flag[1] == "--config" and isinstance(entry.raw, str) and entry.raw.isidentifier():
            # torchtitan's function that configures the model.
            yield from model_of_recipe(entry.raw, replace(entry.place, start=-1, end=-1), planned=True)
        else:
            yield entry
    elif (override := _OVERRIDE.fullmatch(token.text)) and OTHER_JOBS.isdisjoint(override[1].split(".")[:-1]):
        place = replace(token.place, key=override[1], start=token.place.start + override.start(2))
        yield RawEntry(override[1], _raw([override[2].strip("\"'")]), place)


def _of_flag(key: str, flag: re.Match[str], tokens: Sequence[Token], at: int) -> RawEntry:
    token, setting = tokens[at], setting_of(key)
    if flag[2] is not None:
        place = replace(token.place, key=flag[1], start=token.place.start + flag.start(2))
        return RawEntry(key, _raw([flag[2]]), place)
    several = setting is not None and (setting.kind == "names" or setting.name == "modules_per_part")
    values: list[Token] = []
    for value in tokens[at + 1 :]:
        if _FLAG.fullmatch(value.text) or _POLICY.fullmatch(value.text) or (values and not several):
            break
        values.append(value)
    switch = setting.kind == "flag" if setting is not None else switch_of(key) is not None
    if switch and not (values and values[0].text.lower() in ("true", "false", "0", "1")):
        values = []
    raw = _raw([value.text for value in values])
    if setting is not None and setting.name == "modules_per_part" and isinstance(raw, str):
        raw = [part.split(",") for part in raw.split()]
    if values and values[0].place.line == values[-1].place.line and values[0].place.start >= 0:
        return RawEntry(key, raw, replace(values[0].place, key=flag[1], end=values[-1].place.end))
    return RawEntry(key, raw, replace(token.place, key=flag[1], start=token.place.end))


def _raw(values: Sequence[str]) -> object:
    """Return a flag's value; UNKNOWN for what only a running shell has, which is not judged."""
    folder, _, last = values[0].rstrip("/").rpartition("/") if len(values) == 1 else ("", "", "")
    if OPEN in folder and OPEN not in last:
        # The last folder of a path may name a model, wherever it is.
        return last
    if any(OPEN in value for value in values):
        return UNKNOWN
    return " ".join(values) if values else True


def _environment(state: ShellState, *, starts: bool) -> Iterator[RawEntry]:
    """Yield the settings of Slurm's directives and of variables; a launcher sets the number of ranks itself."""
    for directive in _DIRECTIVE.finditer(state.script.text):
        key = _SLURM.get(directive[1])
        if key and (directive[1] not in _TASKS or not (starts or directive[2] == "1")):
            line, start = state.script.position(directive.start(2))
            place = SettingPlace(state.script.file, line, directive[1], start, start + len(directive[2]))
            yield RawEntry(key, directive[2], place)
    for name, tokens in state.variables.items():
        if len(tokens) == 1 and name == "RECIPE":
            # A launch script passes the name of Megatron-Bridge's recipe to its program.
            yield from model_of_recipe(
                tokens[0].text, replace(tokens[0].place, key=name, start=-1, end=-1), planned=True
            )
        elif len(tokens) == 1 and name in _ENVIRONMENT and not (starts and name == "WORLD_SIZE"):
            yield RawEntry(_ENVIRONMENT[name], _raw([tokens[0].text]), replace(tokens[0].place, key=name))
