"""Sentences about bad input, one row each: the door, the input, and what is said. A weak word is a new row.

Every sentence stands in one line, begins with ``pipeplan: `` in the shell, and has the exit code 2.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.foundation.errors import InputError

PLAN = "plan --model llama3-70b --global-batch 128 --sequence 8192"

LINES: dict[str, str] = {
    # Numbers
    "simulate --p2p-time 0,4": "--p2p-time: invalid number '0,4': use a decimal point, 0.4",
    "simulate --p2p-time 1.000,5": "--p2p-time: invalid number '1.000,5': use a decimal point, 1000.5",
    "simulate --p2p-time 1,000": "--p2p-time: invalid number '1,000': write 1000 without separators, or 1.000 with a "
    "decimal "
    "point",
    "simulate --p2p-time 1_000": "--p2p-time: invalid number '1_000': write 1000 without separators",
    "simulate -f 0,4": "forward time of stage 0 must be more than 0 and finite, not 0; commas separate values, so write a "
    "decimal point: 0.4",
    "simulate -f 1,5": "forward times: 2 values for 4 stages; set one number, or 4 values; commas separate values, so "
    "write a "
    "decimal point: 1.5",
    "simulate -f 12ms": "-f: invalid number '12ms': times are plain numbers in one unit; write 12, and add --time-unit ms",
    "simulate -f 3us": "-f: invalid number '3us': times are plain numbers in one unit; write 3, and add --time-unit us",
    "simulate -f 1;2;3;4": "-f: invalid number '1;2;3;4': separate values with commas",
    "simulate -f auto": "-f: invalid number 'auto': to use the default, leave it out",
    "simulate -f 50%": "-f: invalid number '50%': write it as a share, 0.5",
    "search --seconds 2m": "--seconds: invalid number '2m': write 120, in seconds",
    "search --seconds 1.5h": "--seconds: invalid number '1.5h': write 5400, in seconds",
    "simulate -m 8k": "-m: invalid integer '8k': write all digits, 8000 or 8192",
    "simulate -m 1e3": "-m: invalid integer '1e3': write 1000",
    "simulate -p 4.0": "-p: invalid integer '4.0': write 4",
    "simulate -p 4.5": "-p: invalid integer '4.5': expected a whole number such as 4",
    "simulate -p four": "-p: invalid integer 'four': expected a whole number such as 4",
    "simulate -p 4GiB": "-p: invalid integer '4GiB': expected a number without a unit, 4",
    f"{PLAN} --cluster h100:8 --tokens 15T": "--tokens: invalid number '15T': write all digits, 15000000000000 or "
    "16492674416640",
    f"{PLAN.replace('8192', '8k')} --cluster h100:8": "--sequence: invalid integer '8k': write all digits, 8000 or 8192",
    f"{PLAN.replace('8192', '8,192')} --cluster h100:8": "--sequence: invalid integer '8,192': write 8192 without "
    "separators",
    "simulate --p2p-time 1e-3sec": "--p2p-time: invalid number '1e-3sec': times are plain numbers in one unit; write 1e-3, "
    "and add --time-unit s",
    # Sizes
    "simulate --activation-bytes 12G": "--activation-bytes: invalid size '12G': write 12GiB (binary) or 12GB (decimal)",
    "simulate --activation-bytes 12 G": "--activation-bytes: invalid size '12G': write 12GiB (binary) or 12GB (decimal)",
    "simulate --static-bytes 8k": "--static-bytes: invalid size '8k': write 8KiB (binary) or 8KB (decimal)",
    "simulate --p2p-bytes 400Mb": "--p2p-bytes: invalid size '400Mb': a small b means bits; write 400MB",
    "simulate --activation-bytes 1,5GiB": "--activation-bytes: invalid size '1,5GiB': use a decimal point, 1.5GiB, or give "
    "each value its unit",
    "simulate --activation-bytes -5GiB": "activation bytes must be at least 0 and finite, not -5.36871e+09",
    "simulate --activation-bytes inf": "activation bytes must be at least 0 and finite, not inf",
    "simulate --memory-limit -5GiB": "memory limit must be more than 0 and finite, not -5GiB",
    "simulate --memory-limit inf": "memory limit must be more than 0 and finite, not inf",
    "simulate --memory-limit 80%": "memory limit: invalid size '80%': a share is not a size; write it in bytes or "
    "with a unit "
    "such as 60GiB",
    "simulate --memory-limit lots": "memory limit: invalid size 'lots': expected bytes or a unit such as 2GiB, or "
    "activations "
    "such as 8act",
    f"{PLAN} --cluster h100:8 --memory-limit 70 GiB": "unexpected argument 'GiB': write a unit without a blank, as in 12GiB",
    # Clusters
    f"{PLAN} --cluster h100x64": "invalid cluster 'h100x64': expected GPU:PER_NODExNODES, such as h100-sxm:8x8",
    f"{PLAN} --cluster 64xh100": "invalid cluster '64xh100': expected GPU:PER_NODExNODES, such as h100-sxm:8x8",
    f"{PLAN} --cluster h100-sxm-8x4": "invalid cluster 'h100-sxm-8x4': expected GPU:PER_NODExNODES, such as h100-sxm:8x4",
    f"{PLAN} --cluster rtx-4090x8": "invalid cluster 'rtx-4090x8': expected GPU:PER_NODExNODES, such as rtx-4090:8x1",
    f"{PLAN} --cluster h100": "cluster 'h100' has no size: expected GPU:PER_NODExNODES, such as h100-sxm:8x16",
    f"{PLAN} --cluster h100:9": "the 9 GPUs of cluster 'h100:9' do not fill nodes of 8: expected GPU:PER_NODExNODES, "
    "such as "
    "h100-sxm:8x2",
    f"{PLAN} --cluster 64": "invalid cluster '64': expected GPU:PER_NODExNODES, such as h100-sxm:8x16",
    f"{PLAN} --cluster h10:8x8": "unknown GPU 'h10'; did you mean 'h100-sxm'? (GPU:PER_NODExNODES, such as h100-sxm:8x16)",
    # Outputs
    "simulate -o .": "cannot write .: it is a folder; name a file in it",
    "simulate -o folder/": "cannot write folder: it is a folder; name a file in it",
    "simulate -o none/x.png": "cannot write none/x.png: there is no folder none; create it first",
    "simulate -o a.png -o a.png": "a.png is given twice; choose another file for one of the outputs",
    "run --kineto none": "the folder for PyTorch's profiles does not exist: create none first",
    "simulate -o": "-o needs a value: paths",
    # The argument parser
    "simulate -p 4 -p 8": "-p is given twice, the second time as '8': keep one of them",
    "simulate --json --json": "--json is given twice: keep one of them",
    "simulate --json=maybe": "--json takes no value, but got 'maybe': write --json alone",
    "simulate -p": "-p needs a value: a whole number",
    "simulate --theme": "--theme needs a value: one of light, dark",
    "simulate --theme drak": "unknown theme 'drak'; did you mean 'dark'?",
    "simulate --rank 4": "unknown option '--rank'; did you mean '--ranks'?",
    "simulate -ranks 4": "unknown option '-ranks'; did you mean '--ranks'?",
    "simulate —ranks 4": "'—ranks' begins with a long dash: write --ranks",
    "simulate --zzz": "unknown option '--zzz': 'pipeplan simulate --help-all' lists its options",
    "compare --names 1f1b": "unknown option '--names': NAMES is an argument, write its value without '--names'",
    "simulate 1f1b zbv": "unexpected argument 'zbv': 'pipeplan help simulate' lists what the command takes",
    "diff a.csv": "diff needs MEASURED: 'pipeplan help diff' ends with an example",
    "export --split-backwards": "unknown option '--split-backwards'; did you mean '--split-backward'?",
    "simulate --seconds 3": "unknown option '--seconds': 'pipeplan simulate --help-all' lists its options",
    "--verion": "unknown option '--verion'; did you mean '--version'?",
    "plan --model llama3-70b --gpus 64": "--gpus only lists, without --model: drop one of them, or write "
    "'pipeplan list gpus'",
    "list 1f1b": "unknown list '1f1b'; write 'pipeplan list schedules 1f1b'",
    "simulate -p 4 -s 6": "6 stages are not 4 ranks x 1 chunk(s): set at most two of the three",
    "review train.sh -o x": "unknown suffix of an output 'x'; known: .diff, .json, .patch, .sarif",
    "simulat": "unknown command 'simulat'; did you mean 'simulate'?",
    "zbv -p 4": "'zbv' is not a command: write 'pipeplan simulate zbv -p 4'",
    "-p 4": "'-p' stands before a command: name one first, as in 'pipeplan compare -p 4'",
    # Names
    "simulate -c gpt-6.2b": "unknown config file or bundled costs 'gpt-6.2b'; did you mean 'gpt-6.2b-24' or 'gpt-6.2b-64'?",
    "simulate --machine megatron-a10": "unknown machine 'megatron-a10'; did you mean 'megatron-a100'?",
    "simulate -c folder": "cannot read the config file folder: it is a folder; name a file in it",
}
"""Command lines, and what is said of them."""


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_refused_with_its_remedy(run, line):
    Path("folder").mkdir()
    assert run(line) == (2, "", f"pipeplan: {LINES[line]}\n")


FILES: dict[tuple[str, bytes], str] = {
    ("tab.yaml", b"ranks: 4\n\tmicrobatches: 8\n"): "invalid config file tab.yaml: line 2: a tab; use spaces",
    (
        "flow.yaml",
        b"ranks: 4\nlayers: [\n",
    ): "invalid config file flow.yaml: line 3, column 1: a value or a closing bracket is missing before this place",
    (
        "alias.yaml",
        b"ranks: *.py\n",
    ): "invalid config file alias.yaml: line 1, column 9: a value cannot begin with '*' or '&'; put it in quotes",
    ("tab.yaml", b"layers:\n\t- forward: 1\n"): "invalid config file tab.yaml: line 2: a tab; use spaces",
    (
        "a.yaml",
        b"ranks: [4\n",
    ): "invalid config file a.yaml: line 1, column 8: a bracket that is not closed, or a comma that is missing within",
    (
        "a.yaml",
        b"schedule: 'zbv\n",
    ): "invalid config file a.yaml: line 1, column 11: a quotation mark that is not closed",
    (
        "a.yaml",
        b"ranks: 4\n  chunks: 8\n",
    ): "invalid config file a.yaml: line 2, column 9: a key that is indented deeper than the one above; align them",
    (
        "a.yaml",
        b"schedule: a: b\n",
    ): "invalid config file a.yaml: line 1, column 12: a second colon in one entry; put the "
    "value in quotes, or give each key its own line",
    (
        "a.yaml",
        b"ranks: @4\n",
    ): "invalid config file a.yaml: line 1, column 8: a value cannot begin with '@'; put it in quotes",
    (
        "a.yaml",
        b"ranks: 4\nranks: 8\n",
    ): "invalid config file a.yaml: duplicate key 'ranks' in lines 1 and 2; keep one of them",
    (
        "a.yaml",
        b"ranks: 4\n---\nranks: 8\n",
    ): "invalid config file a.yaml: line 2, column 1: a second document after '---'; keep one",
    ("a.yaml", b"ranks: !x 4\n"): "invalid config file a.yaml: line 1, column 8: unsupported YAML tag '!x'; remove it",
    ("a.yaml", b"ranks:4\n"): "the config file a.yaml has no settings: write 'ranks: 4', with a colon and a blank",
    ("a.yaml", b"# nothing\n"): "the config file a.yaml has no settings: it has only comments; expected keys such as "
    "'ranks: 4'",
    ("a.yaml", b"- 4\n"): "the config file a.yaml has no settings: it is a list; expected keys such as 'ranks: 4'",
    ("a.yaml", b""): "the config file a.yaml is empty",
    ("a.yaml", b"\x89PNG\r\n"): "the config file a.yaml is not text: it is a PNG image",
    (
        "a.yaml",
        b"PK\x03\x04",
    ): "the config file a.yaml is not text: it is a ZIP archive or a spreadsheet; export a spreadsheet as CSV",
    (
        "a.yaml",
        b"ranks: 4\n# gr\xfc\xdfe\n",
    ): "the config file a.yaml is not text: byte 13 is not UTF-8 (line 2); save it as UTF-8",
    (
        "a.yaml",
        "ranks: 4".encode("utf-16-le"),
    ): "the config file a.yaml is not text: byte 1 is zero; save it as UTF-8, it looks like UTF-16",
    (
        "a.json",
        b'{"ranks": 4,\n}',
    ): "invalid config file a.json: line 2, column 1: a comma before the closing bracket; remove it",
    (
        "a.json",
        b"{'ranks': 4}",
    ): "invalid config file a.json: line 1, column 2: the quotation mark '; use double quotes",
    (
        "a.json",
        b'{"ranks": 4 // p\n}',
    ): "invalid config file a.json: line 1, column 13: a comment, which JSON does not have; "
    "remove it, or write YAML (.yaml)",
    (
        "a.json",
        b'{"ranks": 4\n "chunks": 2}',
    ): "invalid config file a.json: line 2, column 2: expected a comma before this value, or a closing bracket",
    (
        "a.json",
        b'{"ranks": 4,',
    ): "invalid config file a.json: line 1, column 13: the text ends too early; close its quotes and "
    "brackets, or copy the file again as a whole",
    ("a.json", b'{"pad_times": True}'): "invalid config file a.json: line 1, column 15: 'True'; write true",
    ("a.json", b'{"schedule": zbv}'): "invalid config file a.json: line 1, column 14: 'zbv'; put text in double quotes",
    (
        "a.toml",
        b"ranks: 4\n",
    ): "invalid config file a.toml: line 1, column 6: expected KEY = VALUE; TOML has an equals sign, not a colon",
    (
        "a.toml",
        b"ranks = 4\nschedule = zbv\n",
    ): "invalid config file a.toml: line 2, column 12: 'zbv' is not a value; put text in double quotes",
    ("a.yaml", b"p2p_time: 0,4\n"): "config file a.yaml: p2p_time: invalid number '0,4': use a decimal point, 0.4",
    (
        "a.yaml",
        b"p2p_time: 12ms\n",
    ): "config file a.yaml: p2p_time: invalid number '12ms': times are plain numbers in one "
    "unit; write 12, and set time_unit to ms",
    ("a.yaml", b"ranks: 8k\n"): "config file a.yaml: ranks: invalid integer '8k': write all digits, 8000 or 8192",
    (
        "a.yaml",
        b"ranks: '4'\n",
    ): "config file a.yaml: ranks: expected a number, not the text '4': write it without quotes",
    (
        "a.yaml",
        b"forward_times: [1, x, 1, 1]\n",
    ): "config file a.yaml: forward_times[1]: invalid number 'x': expected a number such as 0.5",
    (
        "a.yaml",
        b"static_bytes: 12 G\n",
    ): "config file a.yaml: static_bytes: invalid size '12 G': write 12GiB (binary) or 12GB (decimal)",
    ("a.yaml", b"pad_times: yes\n"): "config file a.yaml: pad_times: invalid value 'yes': write true or false",
    (
        "a.yaml",
        b"layers: [{forward: 12ms, backward_input: 1, backward_weight: 1}]\n",
    ): "config file a.yaml: forward of a "
    "layer: invalid number '12ms': times are plain numbers in one unit; write 12, and set time_unit to ms",
    (
        "a.json",
        b'{"format": "pipeplan-schedule"}',
    ): "config file a.json has no settings: it is a schedule; pass it in place of "
    "a schedule's name, as in 'pipeplan simulate FILE'",
    ("a.json", b'{"headline": ""}'): "config file a.json has no settings: it is an answer of pipeplan, not an input",
    (
        "a.yaml",
        b"gpu: h100-sxm\nper_node: 8\n",
    ): "config file a.yaml has no settings: it is a cluster; pass it with --cluster",
    ("a.csv", b"0F0,0B0\n"): "a.csv is not a config file, which ends in .yaml, .toml or .json: pass a "
    "schedule in place of its name",
    ("a.yaml", b"rank: 4\n"): "unknown key in config file a.yaml: 'rank'; did you mean 'ranks'?",
}
"""Config files, and what is said of them."""


@pytest.mark.parametrize(("name", "content"), FILES, ids=map(repr, FILES))
def test_a_config_file_is_refused_with_its_place_and_remedy(run, name, content):
    Path(name).write_bytes(content)
    assert run(f"simulate -c {name}") == (2, "", f"pipeplan: {FILES[name, content]}\n")


JSON: dict[bytes, str] = {
    b"[1]": "a.json is not a schedule: expected a group of keys, as pipeplan writes it",
    b'{"ranks": 4}': "a.json is not a schedule: the key 'format' is missing; pass settings files with --config",
    b'{"model_type": "llama"}': "a.json is not a schedule: it is a model's config.json; pass it with --model",
    b'{"headline": ""}': "a.json is not a schedule: it is an answer of pipeplan, not an input",
    b'{"format": "pipeplan-schedule"': "a.json: line 1, column 31: the text ends too early; close its quotes and brackets, "
    "or copy the file again as a whole",
    b'{"format": "pipeplan-schedule"}': "a.json: the key 'version' is missing",
}
"""JSON files in place of a schedule, and what is said of them."""


@pytest.mark.parametrize("content", JSON)
@pytest.mark.parametrize("command", ["simulate", "check", "explain", "search --start"])
def test_a_json_file_that_is_not_a_schedule_is_named(run, command, content):
    Path("a.json").write_bytes(content)
    assert run(f"{command} a.json") == (2, "", f"pipeplan: {JSON[content]}\n")


SCHEDULES: dict[bytes, str] = {
    b"0F0;0B0\n1F0;1B0\n": "a.csv: line 1 has semicolons between ops; separate them with commas",
    b"0F0\t0B0\n1F0\t1B0\n": "a.csv: line 1 has tabs between ops; separate them with commas",
    b"0F0|0B0\n": "a.csv: line 1 has bars between ops; separate them with commas",
    b"0F0 0B0\n": "a.csv: line 1 has blanks between ops; separate them with commas",
    "0F0;0B0\r\n".encode("utf-16"): "a.csv: line 1 has semicolons between ops; separate them with commas",
}
"""Files of schedules, and what is said of them."""


@pytest.mark.parametrize("content", SCHEDULES)
def test_a_file_of_a_spreadsheet_is_refused_with_its_remedy(run, content):
    Path("a.csv").write_bytes(content)
    assert run("simulate a.csv") == (2, "", f"pipeplan: {SCHEDULES[content]}\n")


@pytest.mark.parametrize(
    "content",
    [
        b"0F0,0B0\n1F0,1B0\n",
        b'"0F0","0B0"\r\n"1F0","1B0"\r\n',
        "\ufeff0F0,0B0\r\n1F0,1B0\r\n".encode(),
        "0F0,0B0\r\n1F0,1B0\r\n".encode("utf-16"),
    ],
)
def test_what_a_spreadsheet_may_add_to_a_schedule_changes_nothing(run, content):
    Path("a.csv").write_bytes(content)
    assert run("check a.csv")[:2] == (0, "a.csv is valid: 2 ranks, 2 stages (linear), 1 microbatch, 4 ops\n")


@pytest.mark.parametrize("size", ["12GiB", "12 GiB", "12gib", "12 gib", "12Gi", "12582912KiB", "12 GIB", "12884901888"])
def test_a_size_means_the_same_in_any_unambiguous_spelling(run, size):
    line = ["simulate", "-p", "2", "-m", "2", "--json", "--no-visualization"]
    expected = run(" ".join([*line, "--activation-bytes", "12GiB"]))
    assert run(" ".join([*line, "--activation-bytes", size])) == expected
    assert pipeplan.simulate("1f1b", ranks=2, microbatches=2, activation_bytes=size).peak_bytes == [
        24 * 2**30,
        12 * 2**30,
    ]
    Path("a.yaml").write_text(f"activation_bytes: {size}\n")
    assert run(" ".join([*line, "-c", "a.yaml"])) == expected


CALLS: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: pipeplan.simulate(p2p_time="0,4"), "p2p_time: invalid number '0,4': use a decimal point, 0.4"),  # type: ignore[arg-type]
    (lambda: pipeplan.simulate(ranks="8k"), "ranks: invalid integer '8k': write all digits, 8000 or 8192"),  # type: ignore[arg-type]
    (lambda: pipeplan.search(seconds="2m"), "seconds: invalid number '2m': write 120, in seconds"),  # type: ignore[arg-type]
    (
        lambda: pipeplan.simulate(static_bytes="12G"),
        "static_bytes: invalid size '12G': write 12GiB (binary) or 12GB (decimal)",
    ),
    (lambda: pipeplan.simulate(theme="drak"), "unknown setting 'theme'"),  # type: ignore[call-arg]
)
"""Calls in Python, and what is said of them: the sentence of the shell."""


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_a_call_is_refused_with_the_sentence_of_the_shell(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert message in str(caught.value)
