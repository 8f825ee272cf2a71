import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.cli.app import command_line, describe
from pipeplan.costs import SETTINGS, table_of
from pipeplan.costs.settings import SettingsTable
from pipeplan.extensions.planning.answers.options import PlanOptions
from pipeplan.extensions.search.answers.options import ParetoOptions, SearchOptions
from pipeplan.extensions.training.options import RunOptions
from pipeplan.strategies import STRATEGIES


def test_sizes_have_units_in_the_shell_in_files_and_in_python(run):
    sizes = "--static-bytes 1GiB 5e8 --p2p-bytes 64MiB --p2p-bandwidth 1e8"
    code, out, _ = run(f"simulate -p 2 -m 2 --activation-bytes 2GiB {sizes} --json")
    Path("c.yaml").write_text(
        "ranks: 2\nmicrobatches: 2\nactivation_bytes: 2 GiB\nstatic_bytes: [1GiB, 5.0e8]\np2p_bytes: 64MiB\n"
        "p2p_bandwidth: 1.0e8\n"
    )
    assert run("simulate -c c.yaml --json")[1] == out
    found = pipeplan.simulate("1f1b", ranks=2, microbatches=2, activation_bytes="2GiB", static_bytes=["1GiB", 5e8])
    assert json.loads(out)["peak_bytes"] == found.to_dict()["peak_bytes"] == [5 * 2**30, 2 * 2**30 + 5e8]
    Path("c.yaml").write_text("activation_bytes: lots\n")
    code, _, err = run("simulate -c c.yaml")
    assert code == 2
    assert "activation_bytes: invalid size 'lots': expected bytes or a unit such as 2GiB" in err


def test_help_is_a_command_too(run):
    assert run("help") == run("--help")
    assert run("help explain") == run("explain --help")
    assert "\n\nAttributes every idle moment" in re.sub(" +\n", "\n", run("help explain")[1])


def test_the_settings_of_shape_and_costs_have_a_help_of_their_own(run):
    code, out, _ = run("help costs")
    assert code == 0
    shown = set(re.findall(r"--?\w[\w-]*", out))
    assert {option for setting in SETTINGS.values() if setting.shell != "none" for option in setting.options} <= shown
    assert {name for name, setting in SETTINGS.items() if setting.shell == "none"} <= set(re.findall(r"\w+", out))
    assert "--output" not in shown


@pytest.mark.parametrize(("command", "most"), [("simulate", 48), ("search", 53)])
def test_help_shows_few_options_first_and_all_on_request(run, command, most):
    first, everything = (
        set(re.findall(r"(?m)^│ (--?\w[\w-]*)", run(f"{command} {flag}")[1])) for flag in ("--help", "--help-all")
    )
    assert len(command_line()[command].assemble_argument_collection()) <= most + 1  # and the schedule
    assert len(first) <= 15
    assert first < everything
    assert "More options: --help-all, or 'pipeplan help costs'" in run(f"{command} --help")[1]


def test_the_first_view_of_each_help_fits_a_screen_and_names_each_option_once(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    app = command_line()
    for command in app:
        if command.startswith("-"):
            continue
        out = run(f"{command} --help")[1]
        assert len(out.splitlines()) <= 50, command
        settings = getattr(app[command].default_command, "settings", {}).values()
        shown = set(re.findall(r"(?<![\w-])--?\w[\w-]*", "\n".join(re.findall(r"(?m)^│ (.{0,34})", out))))
        assert not shown & {name for setting in settings for name in setting.other_options}, command
        assert not shown & {name for setting in settings if not setting.usual for name in setting.options}, command


def test_an_option_of_config_files_is_refused_with_its_place(run):
    for line, option in (("simulate --offload all", "offload"), ("search --sharding=none", "sharding")):
        message = f"pipeplan: --{option} is set in a config file: write '{option}: VALUE' in FILE, and pass -c FILE\n"
        assert run(line) == (2, "", message)
    assert run("list --offload all")[2].startswith("pipeplan: unknown option '--offload'")


def test_a_command_is_described_by_the_same_sentence_everywhere():
    app = command_line()
    for command in app:
        if not command.startswith("-") and command != "help":
            summary = app[command].help
            describe(app, command)
            assert (app[command].help or "").splitlines()[0] == summary, command


def test_a_help_text_ends_with_its_default():
    for record in (SettingsTable, SearchOptions, ParetoOptions, PlanOptions, RunOptions):
        for setting in table_of(record).values():
            assert setting.help.endswith("."), setting.name
            assert not re.match("(What|Which|How|Whether|Of|Who) ", setting.help), setting.name
            assert setting.full_help.endswith(f"(default: {setting.default})." if setting.default else "."), (
                setting.name
            )


def test_a_script_for_the_shell_knows_schedules_and_formats(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    run("--install-completion --shell bash")
    (script,) = tmp_path.rglob("completions/pipeplan")
    complete = (
        'source "$0"; function=$(complete -p pipeplan | sed "s/.*-F \\([^ ]*\\).*/\\1/"); '
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); $function; printf "%s " "${COMPREPLY[@]}"'
    )

    def completed(*words: str) -> list[str]:
        found = subprocess.run(["bash", "-c", complete, script, *words], capture_output=True, text=True, check=True)
        return found.stdout.split()

    assert completed("pipeplan", "comp") == ["compare"]
    zero_bubble = [name for name in STRATEGIES if name.startswith("zb")]
    for command in (["simulate"], ["run"], ["profile"], ["search", "--start"]):
        assert completed("pipeplan", *command, "zb") == zero_bubble
    assert "torchtitan" in completed("pipeplan", "export", "--to", "")


def test_every_option_of_a_command_stands_in_its_help(run):
    app = command_line()
    commands = [name for name in app if not name.startswith("-") and name != "help"]
    assert "serve" in commands
    for command in commands:
        options = {argument.name for argument in app[command].assemble_argument_collection()}
        _, out, _ = run(f"{command} --help-all")
        shown = set(re.findall(r"--?\w[\w-]*", out))
        assert (command, {name for name in options if name.startswith("--")} - shown) == (command, set())


def test_names_are_accepted_in_any_case_in_the_shell_in_files_and_in_python(run):
    layers = {"num_layers": 46, "pipeline_model_parallel_size": 4, "tensor_model_parallel_size": 1}
    Path("layers.json").write_text(json.dumps(layers))
    for upper, lower in (
        ("review layers.json --for TorchTitan", "review layers.json --for torchtitan"),
        ("check 1f1b -p 2 -m 2 --for PyTorch", "check 1f1b -p 2 -m 2 --for pytorch"),
        ("export 1F1B -p 2 -m 2 --to Torch-CSV", "export 1f1b -p 2 -m 2 --to torch-csv"),
        ("export 1f1b -p 2 -m 2 --to Megatron-LM", "export 1f1b -p 2 -m 2 --to megatron"),
        ("export Et*2|t*2|tL --to TorchTitan", "export Et*2|t*2|tL --to torchtitan"),
        ("simulate -p 2 -m 2 --communication Streams --json", "simulate -p 2 -m 2 --communication streams --json"),
        ("compare -p 2 -m 2 --allow Slices --json", "compare -p 2 -m 2 --allow slices --json"),
    ):
        assert run(upper) == run(lower)
        assert run(lower)[0] == 0
    Path("c.yaml").write_text("communication: Streams\n")
    assert run("simulate -p 2 -m 2 -c c.yaml --json") == run("simulate -p 2 -m 2 --communication streams --json")
    named: dict[str, Any] = {"communication": "Streams"}  # type checkers know the choices
    assert pipeplan.Settings(**named) == pipeplan.Settings(communication="streams")
    reviews = [pipeplan.review(layers, trainer=name).to_dict() for name in ("TorchTitan", "torchtitan")]
    assert reviews[0] == reviews[1]
    assert "did you mean 'torchtitan'?" in run("export Et*2|t*2|tL --to TorchTitann")[2]
