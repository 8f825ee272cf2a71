"""The command line from outside: what it prints, writes and answers. Exit codes: 0 done, 1 no, 2 wrong input."""

import json
import os
import re
from pathlib import Path

import pytest

import pipeplan.answers
from pipeplan.cli import main

DEADLOCK = "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"


def write(name: str, text: str) -> None:
    with open(name, "w") as file:
        file.write(text)


def test_simulate_prints_a_table_and_draws_a_picture(run):
    code, out, err = run("simulate -s 4 -b 8")
    assert (code, err) == (0, "wrote pipeline_1f1b.png\n")
    assert out.startswith(
        "1f1b takes 33 for 8 microbatches on 4 ranks; its ranks idle 27.3% of that time,\nand no order"
    )
    assert "\n1f1b: simulated, makespan 33, " in out
    assert re.search(r"(?m)^rank 2 \.{4}F0F1", out)
    assert "\n\n4 ranks, 4 stages (linear), 8 microbatches, times assumed: forward 1, backward 2\n" in out
    for line in (
        r"makespan +33",
        r"bubble +27\.3% \(idle / total time\)",
        r"lower bound +27 on this placement, unsliced \(the work of rank 3\)",
        r"gap +22\.2%",
        r"rank +busy +idle +span +activations",
        r"2 +24 +9 +27 +2",
    ):
        assert re.search(f"(?m)^{line}$", out), line
    assert max(map(len, out.splitlines())) <= 80
    assert os.listdir() == ["pipeline_1f1b.png"]


@pytest.mark.parametrize(
    "times", ["-f 1 2 3 4", "-f 1,2,3,4", "-f 1,2 3,4", "-f=1,2,3,4", "--forward-times=1,2,3,4", "-f 1 -f 2 3 4"]
)
def test_lists_are_apart_by_blanks_or_commas(run, times):
    code, out, _ = run(f"simulate {times} -bw 2 --no-visualization --json")
    assert code == 0
    assert json.loads(out)["work"] == [24, 32, 40, 48]


def test_options_override_the_config_file(run):
    write(
        "config.toml",
        'ranks = 2\nmicrobatches = 4\nschedule = "zb-h1"\nno_visualization = true\noutput = ["a.png", "b.csv"]\n',
    )
    code, out, err = run("simulate -c config.toml -m 6 --json")
    assert (code, err) == (0, "wrote b.csv\n")
    document = json.loads(out)
    assert (document["schedule"], document["ranks"], document["microbatches"]) == ("zb-h1", 2, 6)


def test_json_is_alone_on_stdout(run):
    code, out, err = run("simulate --memory-limit 2act --pad-times -f 1 1 --json -o a.svg -o a.csv")
    assert code == 1
    assert len(json.loads(out)["warnings"]) == 3
    assert "wrote a.svg\nwrote a.csv\n" in err
    assert "warning: over the memory limit: rank 0 needs 4 activations, its limit is 2" in err


def test_over_the_memory_limit_the_table_is_still_printed(run):
    code, out, _ = run("simulate gpipe --memory-limit 7act --no-visualization")
    assert code == 1
    assert "makespan" in out
    assert out.startswith("gpipe is over the memory limit: rank 0 needs 8 activations, its limit is 7")
    assert re.search(r"(?m)^gap +none: over the memory limit$", out)


def test_the_columns_of_a_comparison_are_chosen_by_name(run):
    line = "compare 1f1b zbv -p 4 -m 8 --no-visualization"
    assert re.search(r"(?m)^zbv +25\.5 +5\.9% +4 +0\.0%$", run(line)[1])
    code, out, _ = run(f"{line} --columns gap,chunks --columns of-span")
    assert code == 0
    assert re.search(r"(?m)^1f1b +1 +27\.3% +22\.2%$", out)
    assert "bubble" not in out
    meanings = "of span: idle time within the longest span; gap: above the lower bound"
    assert meanings not in " ".join(out.split())
    assert meanings in " ".join(run(f"{line} --columns gap,of-span --verbose")[1].split())
    assert run(f"{line} --columns gaps")[::2] == (2, "pipeplan: unknown column 'gaps'; did you mean 'gap'?\n")


def test_compare_names_what_does_not_fit(run):
    assert "4 schedules not possible here" in " ".join(run("compare -p 3 -m 4")[1].split())
    code, out, _ = run("compare -p 3 -m 4 --all --verbose")
    assert code == 0
    assert out.index("zbv ") < out.index("gpipe ")
    assert "not possible here:" in out
    assert re.search(r"(?m)^  dualpipe: .*even number of ranks", out)
    assert max(map(len, out.splitlines())) <= 80


def test_compare_marks_what_is_over_its_memory(run):
    code, out, _ = run("compare v-min gpipe --memory-limit 3act")
    assert code == 0
    assert "gpipe ! " in out
    assert "v-min ! " not in out
    assert re.search(r"(?m)^gpipe ! .* -$", out)
    assert run("compare gpipe --memory-limit 3act")[0] == 1


def test_compare_in_json(run):
    code, out, err = run("compare -p 3 -m 4 --json -o all.json -o all.png")
    assert code == 0
    document = json.loads(out)
    groups = [[], ["slices"], ["copies"], ["recompute"]]
    places = [(groups.index(result["needs"]), result["makespan"]) for result in document["results"]]
    assert places == sorted(places)
    assert "not possible here: dualpipe" in err
    with open("all.json") as file:
        assert json.load(file) == document


def test_schedules(run):
    code, out, _ = run("list")
    assert run("schedules")[1] == out
    assert code == 0
    for text in ("gpipe: ", "zbv-heuristic: ", "    v, 2 chunks per rank; idle 3.5%, peak 8\n"):
        assert text in out
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = run("list schedules 1F1B")
    assert code == 0
    assert "rank 0 | 0F0 0F1 0F2" in out
    assert re.search(r"(?m)^rank 0 F0F1F2F3\.", out)
    assert "arXiv:1806.03377" in out
    assert re.search(r"(?m)^4 +8 +33 +27\.3% +4$", out)
    assert re.search(r"(?m)^8 +32 +117 +17\.9% +8$", out)
    assert re.search(r"(?m)^8 +8 +not possible$", run("list schedules dualpipe --no-visualization")[1])
    (described,) = json.loads(run("list schedules 1f1b --json")[1])["schedules"]
    assert described["timings"][0] == {
        "ranks": 4, "microbatches": 8, "makespan": 33.0, "idle": 3 / 11, "peak": 4.0, "refused": None
    }  # fmt: skip
    code, out, _ = run("schedules --json")
    assert {"name", "placement", "accepts", "bubble", "memory", "paper"} <= set(json.loads(out)["schedules"][0])


def test_check(run):
    write("right.csv", "0F0,0B0\n1F0,1B0\n")
    assert run("check right.csv") == (0, "right.csv is valid: 2 ranks, 2 stages (linear), 1 microbatch, 4 ops\n", "")
    write("deadlock.csv", DEADLOCK)
    code, out, err = run("check deadlock.csv")
    assert (code, err) == (1, "")
    assert "1F1 on rank 1 waits for 0F1" in out
    assert re.search(r"(?m)^rank 0 +0F0 +>0B0<", out)
    code, out, _ = run("check deadlock.csv --json")
    document = json.loads(out)
    assert (code, document["valid"], document["problems"][0]["rule"]) == (1, False, "deadlock")
    assert set(document["problems"][0]) == {"rule", "where", "message"}


def test_check_notes_what_needs_sends_that_do_not_block(run):
    write(
        "sent.txt",
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n",
    )
    code, out, _ = run("check sent.txt")
    assert code == 0
    assert "note: rendezvous" in out
    code, out, _ = run("check sent.txt --communication blocking --json")
    assert code == 1
    assert json.loads(out)["problems"][0]["rule"] == "rendezvous"
    code, out, _ = run("check sent.txt --communication streams --json")
    assert code == 1
    assert json.loads(out)["problems"][0]["rule"] == "streams"
    assert run("check sent.txt --communication streams --streams direction")[0] == 0
    for command in ("check", "simulate"):
        code, _, error = run(f"{command} sent.txt --streams edge")
        assert (code, error.count("\n")) == (2, 1)
        assert "applies only with communication=streams; communication is edge" in error


def test_a_wrong_file_is_not_simulated(run):
    write("plan.csv", DEADLOCK)
    code, out, err = run("simulate plan.csv")
    assert (code, out) == (1, "")
    assert "ranks wait for each other" in err
    assert re.search(r"(?m)^rank 0 +0F0 +>0B0<", err)
    assert os.listdir() == ["plan.csv"]


def test_export_and_check_and_convert(run):
    code, out, _ = run("export zbv -p 2 -m 3 --to torch-csv")
    assert code == 0
    assert out.startswith("0F0,")
    assert run("export zbv -p 2 -m 3 --to torch-csv -o zbv.csv") == (0, "", "wrote zbv.csv\n")
    with open("zbv.csv") as file:
        assert file.read() == out
    assert run("check zbv.csv")[0] == 0
    assert run("export zbv.csv -o zbv.json") == (0, "", "wrote zbv.json\n")
    assert run("export zbv.json --to torch-csv")[1] == out


BAD_INPUT = [
    ("simulate -f 0", "forward time must be more than 0 and finite, not 0"),
    ("simulate -f x", "-f: invalid number 'x'"),
    ("simulate -f , ", "-f needs a number"),
    ("simulate -f 1 2", "2 values for 4 stages"),
    ("simulate -p 0", "ranks must be at least 1, not 0"),
    ("simulate dualpipe -p 3", "even number of ranks, not 3"),
    ("simulate zbw", "did you mean 'zbv'"),
    ("simulate --memory-limit 2GiB", "is in bytes, but"),
    ("simulate absent.csv", "cannot read the schedule file absent.csv"),
    ("simulate -o a.gif", "suffix of an output '.gif'"),
    ("help compar", "did you mean 'compare'"),
    ("simulate --activation-bytes 2GB2", "--activation-bytes: invalid size '2GB2'"),
    ("export 1f1b --to torch", "torch-csv"),
    ("export 1f1b --to json -o missing/a.json", "there is no folder missing"),
    ("check", "FILE"),
    (f"simulate -m {'9' * 400}", "microbatches must be at most 20,000,000, not about 10^400"),
    ("simulate -p \u0663", "-p: invalid integer '\u0663'"),
    ("simulate \x1b[31mred", r"unknown schedule '\x1b[31mred'"),
    ("simulate --activation-bytes nanGiB", "activation bytes must be at least 0 and finite, not nan"),
    ("check \udcff.json", r"cannot read the schedule file \udcff.json"),
    ("export zbv --to {}", "unknown format '{}'"),
]
"""Command lines that are refused, and what their messages say."""


@pytest.mark.parametrize(("line", "message"), BAD_INPUT, ids=[line for line, _ in BAD_INPUT])
def test_bad_input_is_one_paragraph(run, line, message):
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("pipeplan: ")
    assert "Traceback" not in err
    assert "\n\n" not in err
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("line", "content", "message"),
    [
        ("check bad.csv", b"", "is empty"),
        ("check bad.json", b"\x89PNG\r\n\x1a\n", "not text"),
        ("simulate -c bad.yaml", b"ranks: [1, 2\n", "invalid config file"),
        ("simulate bad.json", None, "100,000,000 bytes"),
    ],
)
def test_files_that_are_not_what_they_should_be(run, line, content, message):
    name = line.split()[-1]
    with open(name, "wb") as file:
        if content is None:
            file.truncate(100_000_000)
        else:
            file.write(content)
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert re.search(message, err)
    assert name in err
    assert len(err.splitlines()) == 1
    assert os.listdir() == [name]


def test_an_input_is_not_overwritten(run):
    write("plan.csv", "0F0,0B0\n1F0,1B0\n")
    write("config.json", '{"ranks": 2}')
    for line in (
        "simulate plan.csv -o plan.csv",
        "simulate -c config.json -o config.json",
        "export plan.csv --to json -o plan.csv",
        "export plan.csv ./plan.csv",
    ):
        code, _, err = run(line)
        assert code == 2
        assert "never overwritten" in err
    assert sorted(os.listdir()) == ["config.json", "plan.csv"]


def test_debug_shows_the_traceback(run):
    code, _, err = run("simulate zbw --debug")
    assert code == 2
    assert "Traceback" in err
    assert "UnknownNameError" in err
    assert r"\x1b[31m" in run("simulate \x1b[31m --debug")[2]
    assert "\x1b" not in run("simulate \x1b[31m --debug")[2]


def test_an_error_of_ours_asks_for_a_report(run, monkeypatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("pipeplan.answers.simulated", fail)
    code, _, err = run("simulate --no-visualization")
    assert code == 2
    assert "ZeroDivisionError: division by zero" in err
    assert "--debug" in err
    assert "Traceback" not in err


def test_help_and_version(run):
    code, out, _ = run("--help")
    assert code == 0
    assert all(command in out for command in ("list", "simulate", "compare", "check", "export"))
    code, out, _ = run("simulate --help")
    assert all(text in out for text in ("Shape", "Times", "--ranks -p", "--memory-limit", "Example: pipeplan simulate"))
    assert "--op-gap" not in out
    assert "--num-devices" not in out
    assert all(option in run("simulate --help-all")[1] for option in ("-bw", "--op-gap", "--num-devices"))
    assert run("--version")[1].strip() == "0.1.0"


def test_a_comparison_says_how_short_any_can_be_and_what_was_assumed_once(run):
    code, out, err = run("compare -f 1 --p2p-time 0.1 --time-unit ms --verbose")
    said = " ".join(out.split())
    assert (code, err) == (0, "")
    assert (
        "No schedule with one copy of the model, without slices and without recomputation, on the placements v, loop "
        "or linear, with 1 or 2 chunks per rank, can be shorter than 25.80 ms (v, 2 chunks per rank): zbv is 3.9% "
        "above it." in said
    )
    assert said.count("overlapped forward and backward: assumed to take as long as both in sequence") == 1
    assert re.search(r"(?m)^zbv +26\.80 +10\.4% +4\.000 +3\.9%$", out)


def test_memory_that_runs_out_is_one_sentence(monkeypatch, capsys):
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(pipeplan.answers, "simulated", exhausted)
    assert main(["simulate", "--no-visualization"]) == 2
    assert capsys.readouterr().err == "pipeplan: out of memory; choose a smaller shape\n"


def test_escape_codes_in_the_name_of_a_file_are_shown(capsys):
    Path("b\x1b[31m.csv").write_text("0F0,0B0")
    assert main(["check", "b\x1b[31m.csv"]) == 0
    assert main(["simulate", "b\x1b[31m.csv", "--no-visualization", "-o", "a\x1b.json"]) == 0
    assert main(["simulate", "no\x1b[31m.csv"]) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert r"b\x1b[31m.csv is valid" in out
    assert r"wrote a\x1b.json" in err
    assert r"no\x1b[31m.csv" in err
