"""What the workers do: from a request to the bytes of the reply."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeplan.api import comparison_of_results, load_config, shipped_costs
from pipeplan.costs import SETTINGS, Config
from pipeplan.drawing.html import timeline_data
from pipeplan.errors import PipeplanError
from pipeplan.files import temporary_folder
from pipeplan.records import Record
from pipeplan.strategies import is_strategy, strategy
from pipeplan.web.asked_schedules import only_one, results
from pipeplan.web.explanation import explanation
from pipeplan.web.faults import fault
from pipeplan.web.json_answers import as_json
from pipeplan.web.records import CompareReply, ConfigReply, Fault, Faults, RefusedSchedule
from pipeplan.web.requests import CompareIn, ExplainIn
from pipeplan.web.timeline_views import choose, views

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """The bytes that are sent back, and what they are."""

    body: bytes
    status: int = 200
    media: str = JSON
    filename: str | None = None


def compare(question: CompareIn) -> Reply:
    """Figures of every schedule that can be had, why others cannot, and the timelines of some."""
    had, wrong = results(question)
    if not had:
        return refused(*wrong.values())
    drawn, undrawn = choose(had, question.draw)
    comparison = comparison_of_results(had)
    return json_reply(
        CompareReply(
            results=comparison.results,
            refused=tuple(
                RefusedSchedule(schedule=name, field=found.field, message=found.message)
                for name, found in wrong.items()
            ),
            warnings=comparison.warnings,
            least_bound=comparison.least,
            drawn=tuple(result.name for result in drawn),
            undrawn=tuple(undrawn),
            timeline=timeline_data(views(drawn, reasons=question.reasons)) if drawn else None,
        )
    )


def explain(question: ExplainIn) -> Reply:
    """Why each rank idles, the critical path, and what would help."""
    try:
        return json_reply(explanation(*only_one(question)))
    except PipeplanError as error:
        return refused(fault(error))


def config(upload: tuple[str, bytes]) -> Reply:
    """The settings of a config or profile file: its name with the ending that tells the language, and its bytes."""
    name, content = upload
    with temporary_folder() as folder:
        path = folder / f"file{_ending(name)}"
        path.write_bytes(content)
        try:
            found = load_config(path)
        except PipeplanError as error:
            return refused(Fault(field="file", message=fault(error).message.replace(str(path), f"'{name}'")))
    return config_reply(found)


def _ending(name: str) -> str:
    """The ending of a name as far as it can be one of a config file."""
    found = re.search(r"\.[A-Za-z0-9]{1,12}$", name)
    return found.group() if found else ""


def preset(name: str) -> Reply:
    """The settings of costs that come with pipeplan."""
    try:
        return config_reply(shipped_costs(name))
    except PipeplanError as error:
        return refused(fault(error))


def config_reply(found: Config) -> Reply:
    """The settings of a config, for a form."""
    settings = {name: value for name, value in found.settings.items() if name != "costs_name"}
    named = found.schedule
    names = [strategy(named).name] if named is not None and is_strategy(named) else []
    notes = [f"the schedule '{named}' is left out: drop its file"] if named is not None and not names else []
    homeless = [name for name in settings if not SETTINGS[name].in_form and name != "stages"]
    notes += [f"{name.replace('_', ' ')} have no field on this page and are left out" for name in homeless]
    # What is no number becomes text, so that the field that it is put into says so.
    reply = ConfigReply(settings=settings, schedules=tuple(names), notes=tuple(notes))
    return Reply(as_json(reply, not_a_number="strings"))


def refused(*faults: Fault) -> Reply:
    """A refusal with each fault once."""
    once = {(each.field, each.message): each for each in faults}
    return Reply(as_json(Faults(errors=tuple(once.values()))), 422)


def json_reply(record: Record) -> Reply:
    """Return a record as JSON; what is no number is null."""
    return Reply(as_json(record))
