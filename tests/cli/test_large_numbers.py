"""Numbers at and beyond the edge of what can be added up: every answer is strict JSON, or one sentence with the setting."""

import json

import pytest

PLAN = "0F0,0B0\n1F0,1B0\n"
COMMANDS = (
    "simulate --json --no-visualization",
    "compare 1f1b zb-h1 --json",
    "explain --json",
    "search -p 2 -m 2 --evaluations 20 --json",
    "export 1f1b --to trace",
    "export 1f1b --to costs",
    "check plan.csv --memory-limit 1GiB --json",
    "diff plan.csv run.json --json",
)

REFUSED = [
    ("-f 1e308", "forward time: 1e+308 is too large"),
    ("-bw 1e308", "backward time: 1e+308 is too large"),
    ("-f 1e-308", "forward time: 1e-308 is too small"),
    ("--p2p-time 1e308", "p2p time: 1e+308 is too large"),
    ("--p2p-bytes 1e308 --p2p-bandwidth 1", "p2p bytes: 1e+308 is too large"),
    ("--p2p-bytes 1e90 --p2p-bandwidth 1e-90", "p2p bytes / bandwidth: 1e+180 is too large"),
    ("--activation-bytes 1e308", "activation bytes: 1e+308 is too large"),
    ("--activation-bytes 1e-308", "activation bytes: 1e-308 is too small"),
    ("--activation-bytes 1 --weight-activation-bytes 1e308", "weight activation bytes: 1e+308"),
    ("--activation-bytes 1 --static-bytes 1e308", "static bytes: 1e+308 is too large"),
    ("--activation-bytes 1 --memory-limit 1e308GiB", "memory limit 1e308GiB: inf is too large"),
]


def not_a_number(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


@pytest.fixture
def strict(run):
    """Runs a command on a plan of two ranks and reads what it prints as JSON."""

    def strict(line: str) -> tuple[int, object, str]:
        with open("plan.csv", "w") as file:
            file.write(PLAN)
        if line.startswith("diff"):
            assert run("simulate plan.csv -o run.json")[0] == 0
        code, out, err = run(line)
        return code, json.loads(out, parse_constant=not_a_number) if out else None, err

    return strict


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("option", "message"), REFUSED, ids=[option for option, _ in REFUSED])
def test_what_cannot_be_added_up_is_one_sentence(strict, command, option, message):
    extra = " --activation-bytes 1" if "check" in command and "activation-bytes" not in option else ""
    code, document, err = strict(f"{command} {option}{extra}")
    assert (code, document) == (2, None)
    assert message in err.splitlines()[-1]
    assert "should not have happened" not in err


@pytest.mark.parametrize(
    "option",
    [
        "-f 1e97",
        "-f 1e-99 -bw 1e-99",
        "--p2p-time 1e97 -f 1e-99 -bw 1e-99",
        "--p2p-time 1e-320",
        "--activation-bytes 1e-99 --weight-activation-bytes 1e99 --static-bytes 1e99",
        "--activation-bytes 1e99 --static-bytes 1e-320 --memory-limit 1e100",
    ],
)
@pytest.mark.parametrize("command", COMMANDS[:6])
def test_what_can_be_added_up_is_strict_json(strict, command, option):
    code, document, err = strict(f"{command} {option}")
    assert code in (0, 1)
    assert document is not None
    assert "Warning" not in err


def test_times_that_only_their_sum_makes_too_large(strict):
    code, document, err = strict("simulate -f 1e99 --json")
    assert (code, document) == (2, None)
    assert "the times of 1f1b add up to more than 1e+100" in err


@pytest.mark.parametrize("time", ["1e308", "1e101"])
def test_a_timeline_of_such_times(strict, run, time):
    assert strict("diff plan.csv run.json --json")[0] == 0
    with open("run.json") as file:
        document = json.load(file)
    document["end"][0][-1] = float(time)
    with open("run.json", "w") as file:
        json.dump(document, file)
    for line in ("diff plan.csv run.json --json", "convert run.json run.trace.json"):
        code, out, err = run(line)
        assert (code, out) == (2, "")
        assert "run.json: the times of plan add up to more than 1e+100" in err
