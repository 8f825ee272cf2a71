"""Schemathesis over the API: what its description allows and what it does not, and no error of the server."""

from __future__ import annotations

import pytest

pytest.importorskip("schemathesis", reason="this test needs the package 'schemathesis'")
pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis import GenerationMode

CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]
OPERATIONS = [
    ("GET", "/api/schedules"),
    ("GET", "/api/formats"),
    ("GET", "/api/settings"),
    ("GET", "/api/presets"),
    ("GET", "/api/presets/{name}"),
    ("POST", "/api/compare"),
    ("POST", "/api/draw"),
    ("POST", "/api/shape"),
    ("POST", "/api/explain"),
    ("POST", "/api/download"),
    ("POST", "/api/config"),
    ("POST", "/api/edit/begin"),
    ("POST", "/api/edit"),
    ("GET", "/api/review/settings"),
    ("POST", "/api/review"),
    ("GET", "/api/plan/settings"),
    ("POST", "/api/plan"),
    ("POST", "/api/plan/chosen"),
    ("POST", "/api/search"),
    ("POST", "/api/front"),
]
SEARCHING = ("/api/search", "/api/front", "/api/plan")
"""A valid request takes its budget, half a minute each: other tests of the web app ask for less."""


@pytest.fixture(scope="module")
def schema(address):
    return schemathesis.openapi.from_url(f"{address}/api/openapi.json")


def test_these_are_all_operations(schema):
    result = {(operation.ok().method.upper(), operation.ok().path) for operation in schema.get_all_operations()}
    assert result == set(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_makes_the_server_fail(schema, method, path, mode):
    if (method, mode) == ("GET", GenerationMode.NEGATIVE) and "{" not in path:
        pytest.skip("there is nothing in this request that could be wrong")
    if path in SEARCHING and mode is GenerationMode.POSITIVE:
        pytest.skip("valid searches and plans are tested elsewhere, with small budgets")

    @hypothesis.settings(
        max_examples=6,
        deadline=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=schema[path][method].as_strategy(generation_mode=mode))
    def check(case):
        case.call_and_validate(checks=CHECKS, timeout=120)

    check()
