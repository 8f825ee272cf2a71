from importlib.metadata import PackageNotFoundError

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeplan
from pipeplan.formats import parse_torch_csv, torch_csv, torch_release
from pipeplan.formats.pytorch_csv import torch_csv_comms, torch_csv_compute
from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.model import format_cells, format_schedule, parse_schedule
from pipeplan.passes import insert_communication, without_recompute
from tests.conformance import conformance
from tests.formats.schedules import schedules

PLAN = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"


def test_a_line_a_rank():
    schedule = parse_torch_csv(PLAN, name="plan")
    assert format_schedule(schedule) == "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"
    assert torch_csv(schedule) == PLAN


def test_as_pytorch_writes_it():
    """Windows line ends, empty cells for bubbles, rows of different length, overlapped pairs, communication."""
    text = "0F0,,0SEND_F0,(0F1;0B0)OVERLAP_F_B,,\r\n,1RECV_F0,1F0\r\n"
    schedule = parse_torch_csv(text, name="plan")
    assert format_schedule(schedule) == "0F0 0SEND_F0 (0F1;0B0)OVERLAP_F_B\n1RECV_F0 1F0"


def test_strict():
    for text, message in [
        ("rank,op\n" + PLAN, "plan: line 1 has no op"),
        (PLAN + "\n", "plan: line 3 is blank"),
        ("0F0,0B0\n\n1F0,1B0\n", "plan: line 2 is blank"),
        ("0F0,0B0,0X0\n1F0,1B0\n", "plan: rank 0, cell 2: '0X0' is not an op"),
        ("0F0xyz,0B0\n", "line 1|0F0xyz"),
        ("0F0,(0F1;(0F2;0B0)OVERLAP_F_B)OVERLAP_F_B\n", "plan: rank 0, cell 1"),
        ("0F0,(0F1,0B0)OVERLAP_F_B\n", r"plan: rank 0, cell 1: '\(0F1' is not an op"),
        ("0F0,0F0,0B0\n", "plan: duplicate: 0F0 is on rank 0"),
        ('"0F0,0B0"\n', "line 1 has no op"),
        ("0F0;0B0\n1F0;1B0\n", "line 1 has semicolons between ops; separate them with commas"),
        ("(0F0;0B1)OVERLAP_F_B;0B0\n", "line 1 has semicolons between ops"),
        ("0F0\t0B0\n", "line 1 has tabs between ops"),
        (",,\n,\n", "plan: line 1 is blank"),
    ]:
        with pytest.raises(FormatError, match=message):
            parse_torch_csv(text, name="plan")
    for text, message in [
        ("0F0.0 0F0.1", "slices"),
        ("0F0 0R0 0B0", "recomputation"),
        ("0F0 0OFFLOAD0 0RELOAD0 0B0", "copies to the host"),
    ]:
        with pytest.raises(FormatError, match=message):
            torch_csv(parse_schedule(text))


@given(schedules(slices=1), st.booleans())
def test_reader_and_writer_undo_each_other(schedule, with_communication):
    schedule = without_recompute(schedule)
    if with_communication:
        schedule = insert_communication(schedule)
    assert parse_torch_csv(torch_csv(schedule), name=schedule.name) == schedule


def test_pytorchs_own_orders():
    """Their bubbles are empty cells, as PyTorch writes them."""
    for name, rows in conformance("torch_orders.json")["orders"].items():
        text = "".join(row.replace(" ", ",").replace(".", "") + "\n" for row in rows)
        cells = [[cell for cell in row.split() if cell != "."] for row in rows]
        assert [format_cells(row) for row in parse_torch_csv(text, name=name)] == cells


ONE = (
    "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,{}0REDUCE_GRAD,{}0RESHARD\n"
    "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,{}1RESHARD{}\n"
)
UNTIL_2_14 = ONE.format("", "", "", "")
FROM_2_15 = ONE.format("0WAIT_SEND_F0,", "0WAIT_REDUCE_GRAD,", "1WAIT_REDUCE_GRAD,", ",1WAIT_SEND_B0")


@pytest.mark.parametrize(
    ("release", "expected"),
    [("2.13", UNTIL_2_14), ("2.14.1", UNTIL_2_14), ("2.15", FROM_2_15), ("2.15.0+cu132", FROM_2_15)],
)
def test_communication_is_written_in_the_form_of_a_release(release, expected):
    for source in ("0F0,0B0\n1F0,1B0\n", UNTIL_2_14, FROM_2_15):
        plan = parse_torch_csv(source, name="plan")
        assert torch_csv(plan) == source
        assert torch_csv_comms(plan, release) == expected
        # PyTorch refuses any other op where it adds communication by itself.
        assert torch_csv_compute(plan) == "0F0,0B0\n1F0,1B0\n"


@pytest.mark.parametrize("release", ["2.12", "2.150", "", "2.15x1", "2.15\n"])
def test_an_unknown_release_is_refused(release):
    with pytest.raises(InputError, match=r"unknown release of PyTorch .*: expected one of 2\.13"):
        torch_release(release)


def test_the_release_is_that_of_the_installed_pytorch_or_the_newest(monkeypatch):
    installed = None

    def version(name):
        if installed is None:
            raise PackageNotFoundError(name)
        return installed

    monkeypatch.setattr("importlib.metadata.version", version)
    plan = parse_torch_csv("0F0,0B0\n1F0,1B0\n", name="plan")
    assert torch_csv_comms(plan) == FROM_2_15
    forms = {"2.13.0+cpu": UNTIL_2_14, "2.14.1": UNTIL_2_14, "2.15.0": FROM_2_15, "2.16.0a0+git1": FROM_2_15}
    for installed, form in forms.items():
        assert torch_csv_comms(plan) == form, installed


def test_microbatches_are_numbered_in_the_order_of_their_losses():
    plan = parse_torch_csv("0F0,0F1,0B0,0B1\n1F1,1F0,1B1,1B0\n", name="plan")
    assert torch_csv_compute(plan) == "0F1,0F0,0B1,0B0\n1F0,1F1,1B0,1B1\n"
    assert "1F0,1F1,1B0" in torch_csv_comms(plan, "2.13")


def test_a_csv_is_checked_by_the_rules_of_pytorch_unless_it_is_for_another_trainer(tmp_path):
    path = tmp_path / "plan.csv"
    path.write_text(torch_csv(pipeplan.simulate("dualpipe", ranks=2, microbatches=4).schedule))
    assert [problem.rule for problem in pipeplan.check(path).problems] == ["form"]
    assert [problem.rule for problem in pipeplan.check(path, trainer="megatron").problems] == ["trainer"]
    assert pipeplan.check("dualpipe", ranks=2, microbatches=4).valid
