"""Shell scripts and lists of arguments: the flags of the command that trains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.readers.shell_state import OPEN, ShellState, Token
from pipeplan.extensions.review.readers.source import configured_by, phase_of, phase_of_command
from pipeplan.extensions.review.settings import UNKNOWN, setting_of, switch_of
from pipeplan.extensions.review.stated import RawEntry, counts_tokens

_FLAG = re.compile(r"(--[A-Za-z][\w.\-]*)(?:=(.*))?", re.DOTALL)
_OVERRIDE = re.compile(r"[+~]{0,2}((?:[A-Za-z_]\w*\.)+\w+)=(.*)", re.DOTALL)
_DIRECTIVE = re.compile(r"^\s*#SBATCH\s+(--[\w-]+)[=\s](\S+)")
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Z_]\w*)=(\S+)")

_ENVIRONMENT_KEYS = {
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

_FLAG_KEYS = {"--nodes": "nnodes", "--gpus-per-node": "nproc_per_node", "--ntasks-per-node": "nproc_per_node"}

_RECIPE = "RECIPE"
"""Variable with the name of Megatron-Bridge's recipe, which a launch script passes to its program."""

_POLICY = re.compile(r"activation-checkpoint:([\w-]+)")
"""Matches torchtitan's subcommand with the policy of activation checkpoints."""

_CONFIG_FLAG = "--config"
"""torchtitan's flag with the function that configures the model."""

_LAUNCHER = frozenset({"gpus", "nodes", "gpus_per_node"})
"""Settings that the launcher of a command has."""

_OTHER_MODELS = re.compile(r"(?:^|\.)(?:ref|critic|reward_model|teacher|rollout)\.")
"""Overrides of models beside the one that trains."""


def read_in_shell(text: str, file: str) -> tuple[list[RawEntry], bool]:
    """Return the settings of a script in the order of its commands, and whether it has the whole command that trains."""
    state = ShellState(text)
    entries = list(_environment(text, file, state))
    commands = [list(_settings_of(tokens, file)) for tokens in state.commands]
    variables = [entry for tokens in state.variables.values() for entry in _settings_of(tokens, file)]
    best = max(range(len(commands)), key=lambda place: (len(commands[place]), place), default=-1)
    for place, command in enumerate(commands):
        # Ray's number of GPUs is that of one node.
        if place != best and "ray start" not in " ".join(token.text for token in state.commands[place]):
            entries += (entry for entry in command if _name_of(entry) in _LAUNCHER)
    whole = best >= 0 and len(commands[best]) >= len(variables)
    if not whole:
        # The script only defines arguments, which another one passes on with more.
        entries += variables
    if best >= 0:
        entries += commands[best]
    words = (token.text for tokens in (*state.commands, *state.variables.values()) for token in tokens)
    entries += phase_of(words, file)
    if best >= 0 and commands[best]:
        entries += phase_of_command(" ".join(token.text for token in state.commands[best]), file)
    return entries, whole


def _name_of(entry: RawEntry) -> str:
    setting = setting_of(entry.key)
    return "" if setting is None else setting.name


def _settings_of(tokens: Sequence[Token], file: str) -> Iterator[RawEntry]:
    """Yield the settings among the flags and overrides of a command."""
    for at, token in enumerate(tokens):
        flag = _FLAG.fullmatch(token.text)
        policy = _POLICY.fullmatch(token.text)
        override = None if flag or OPEN in token.text else _OVERRIDE.fullmatch(token.text)
        if policy:
            place = SettingPlace(file, token.line, "activation-checkpoint", token.start + policy.start(1), token.end)
            yield RawEntry("activation_checkpoint.mode", policy[1], place)
        elif flag and flag[1] == _CONFIG_FLAG and flag[2] is None and at + 1 < len(tokens):
            yield from configured_by(tokens[at + 1].text, SettingPlace(file, token.line, _CONFIG_FLAG))
        elif flag:
            key = _FLAG_KEYS.get(flag[1], flag[1])
            if setting_of(key) is not None or switch_of(key) is not None or counts_tokens(key):
                yield _of_flag(key, flag, tokens, at, file)
        elif override and setting_of(override[1]) is not None and not _OTHER_MODELS.search(override[1]):
            place = SettingPlace(file, token.line, override[1], token.start + override.start(2), token.end)
            yield RawEntry(override[1], UNKNOWN if token.undecided else override[2].strip("\"'"), place)


def _of_flag(key: str, flag: re.Match[str], tokens: Sequence[Token], at: int, file: str) -> RawEntry:
    token, setting = tokens[at], setting_of(key)
    if flag[2] is not None:
        place = SettingPlace(file, token.line, flag[1], token.start + flag.start(2), token.end)
        return RawEntry(key, _raw([flag[2]], undecided=token.undecided), place)
    values: list[Token] = []
    several = setting is not None and (setting.kind == "names" or setting.name == "modules_per_part")
    for value in tokens[at + 1 :]:
        if _FLAG.fullmatch(value.text) or _POLICY.fullmatch(value.text) or (values and not several):
            break
        values.append(value)
    switch = setting.kind == "flag" if setting is not None else not counts_tokens(key)
    if switch and not (values and values[0].text.lower() in ("true", "false", "0", "1")):
        values = []
    undecided = token.undecided or any(value.undecided for value in values)
    raw = _raw([value.text for value in values], undecided=undecided)
    if setting is not None and setting.name == "modules_per_part" and isinstance(raw, str):
        raw = [part.split(",") for part in raw.split()]
    if values and values[0].line == values[-1].line and values[0].start >= 0:
        return RawEntry(key, raw, SettingPlace(file, values[0].line, flag[1], values[0].start, values[-1].end))
    return RawEntry(key, raw, SettingPlace(file, token.line, flag[1], token.end, token.end))


def _raw(values: Sequence[str], *, undecided: bool) -> object:
    """Return a flag's value; UNKNOWN for what only a running shell has, which is not judged."""
    if undecided or any(OPEN in value for value in values):
        return UNKNOWN
    return " ".join(values) if values else True


def _environment(text: str, file: str, state: ShellState) -> Iterator[RawEntry]:
    for number, line in enumerate(text.split("\n"), 1):
        directive = _DIRECTIVE.match(line)
        if directive:
            key = _FLAG_KEYS.get(directive[1])
            count = re.search(r"(\d+)$", directive[2])
            if key and count:
                yield RawEntry(key, count[1], SettingPlace(file, number, directive[1], *directive.span(2)))
            continue
        match = _ASSIGNED.match(line)
        if match and match[1] == _RECIPE and len(recipe := state.variables.get(_RECIPE, ())) == 1:
            yield from configured_by(recipe[0].text, SettingPlace(file, number, _RECIPE))
        if match and match[1] in _ENVIRONMENT_KEYS:
            value = state.variables.get(match[1], ())
            if len(value) == 1 and value[0].line == number:
                raw = _raw([value[0].text], undecided=value[0].undecided)
                place = SettingPlace(file, number, match[1], value[0].start, value[0].end)
                yield RawEntry(_ENVIRONMENT_KEYS[match[1]], raw, place)
