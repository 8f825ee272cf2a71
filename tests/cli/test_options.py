from dataclasses import fields

from pipeplan.cli.options import SettingOptions
from pipeplan.costs.settings import SETTING_NAMES


def test_there_is_an_option_for_every_setting():
    assert {field.name for field in fields(SettingOptions)} == {*SETTING_NAMES, "config"}


def test_the_machines_are_listed(run):
    code, out, _ = run("schedules --machines")
    assert code == 0
    assert out.startswith("megatron-a100: ")
    assert run("schedules zbv --machines")[0] == 2


def test_a_machine_needs_the_unit_of_the_times(run):
    code, _, err = run("simulate --machine megatron-a100 --no-visualization")
    assert code == 2
    assert "unit of the times" in err
    assert run("simulate --machine megatron-a100 --time-unit ms --no-visualization")[0] == 0
