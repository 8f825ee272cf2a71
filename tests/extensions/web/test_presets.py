"""Presets over the web: what is there, the settings of each, and the form that they fill."""

from __future__ import annotations

import pytest

from pipeplan.answers import shipped, shipped_costs


def test_all_presets_are_listed(client):
    result = client.get("/api/presets").json()
    assert [item["name"] for item in result] == [item.name for item in shipped()]
    assert {item["origin"] for item in result} == {"measured", "planned"}


@pytest.mark.parametrize("name", ["gpt-6.2b-24", "llama3-70b-64"])
def test_a_preset_is_what_a_config_file_is(client, name):
    actual = client.get(f"/api/presets/{name}").json()
    settings = shipped_costs(name).settings
    assert actual["settings"].keys() == settings.keys()
    assert actual["settings"]["forward_times"] == pytest.approx(settings["forward_times"])
    answer = client.post("/api/compare", json={"settings": actual["settings"], "schedules": ["1f1b", "zbv"]}).json()
    assert {result["schedule"] for result in answer["results"]} == {"1f1b", "zbv"}


@pytest.mark.parametrize("name", ["gpt-6.2b-23", "..%2F..%2Fapp", "x" * 81])
def test_a_preset_that_is_none_is_refused(client, name):
    answer = client.get(f"/api/presets/{name}")
    assert answer.status_code in (404, 422)
    assert answer.json()["errors"]
