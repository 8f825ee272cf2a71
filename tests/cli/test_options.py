from dataclasses import fields

from pipeplan.cli.options import SettingOptions
from pipeplan.costs.settings import SETTING_NAMES


def test_there_is_an_option_for_every_setting():
    assert {field.name for field in fields(SettingOptions)} == {*SETTING_NAMES, "config"}
