import json

import pytest


def test_a_run_as_planned_and_one_that_is_slower(run, tmp_path):
    plan, slower = tmp_path / "plan.json", tmp_path / "slower.json"
    run(f"simulate zb-h1 -p 2 -m 3 --time-unit ms --no-visualization -o {plan}")
    run(f"simulate zb-h1 -p 2 -m 3 -f 1.5 -bw 2 --time-unit ms --no-visualization -o {slower}")
    code, out, _ = run(f"diff {plan} {plan} --json")
    same = json.loads(out)
    assert code == 0
    assert (same["error"], same["departure"]) == (0, None)
    code, out, _ = run(f"diff zb-h1 {slower} -p 2 -m 3 --time-unit ms --json -o {tmp_path / 'both.html'}")
    found = json.loads(out)
    assert code == 0
    assert found["error"] == pytest.approx(found["from_costs"])
    assert {kind["kind"] for kind in found["kinds"] if kind["measured"] != kind["planned"]} == {"F"}
    assert (tmp_path / "both.html").read_text().startswith("<!doctype html>")
    code, out, _ = run(f"diff {plan} {slower}")
    assert code == 0
    assert " ".join(out.split()).startswith(found["headline"])
    code, out, _ = run(f"diff {plan} {slower} --verbose")
    assert code == 0
    assert "All of that comes from ops that took longer than planned." in out


def test_timelines_of_other_ops(run, tmp_path):
    run(f"simulate 1f1b -p 2 -m 3 --no-visualization -o {tmp_path / 'a.json'}")
    code, out, err = run(f"diff zb-h1 {tmp_path / 'a.json'} -p 2 -m 3")
    assert (code, out) == (2, "")
    assert err.startswith("pipeplan: ")
    assert run(f"diff zb-h1 {tmp_path / 'absent.json'}")[0] == 2
    assert run(f"diff {tmp_path / 'a.json'} {tmp_path / 'a.json'} -o {tmp_path / 'x.csv'}")[0] == 2
