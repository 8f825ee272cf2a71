"""``pipeplan search --steady-state``."""

import json

LINE = "search --steady-state -p 2 --placement v --seconds 0.5"


def test_it_prints_the_pattern_and_its_bound(run):
    code, out, _ = run(f"{LINE} --memory-limit 2act -o steady.json")
    assert code == 0
    assert "each further microbatch" in out
    assert "rank 1: " in out


def test_its_json_is_the_record(run):
    code, out, _ = run(f"{LINE} --json")
    told = json.loads(out)
    assert code == 0
    assert told["per_microbatch"] >= told["bound"] == 3.0
    assert len(told["pattern"]["rows"]) == 2


def test_it_takes_none_of_the_other_options_of_a_search(run):
    code, _, err = run(f"{LINE} --pareto")
    assert code == 2
    assert "--steady-state and --pareto exclude each other" in err
    assert run(f"{LINE} --jitter 0.1")[::2] == (2, "pipeplan: Unknown option: --jitter.\n")


def test_a_published_schedule_is_measured_without_a_flush(run):
    code, out, _ = run("steady-state --schedule 1f1b -p 4 -m 8")
    assert code == 0
    assert "step of 8 microbatches    24" in out
    assert "33 (+37.5%)" in out
    code, out, _ = run("steady-state --schedule 1f1b -p 4 -m 8 --json")
    assert json.loads(out)["steps"]["step"] == 24
