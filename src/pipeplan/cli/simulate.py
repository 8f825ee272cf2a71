"""``pipeplan simulate`` and ``explain``: one schedule."""

from __future__ import annotations

from functools import partial

from pipeplan import answers
from pipeplan.answers import AllowOptions, ShownOptions
from pipeplan.cli.answers import deliver, print_answer, show_above
from pipeplan.cli.options import LineSettings, OutputOptions, ScheduleName, command, request


@command
def simulate(
    name: ScheduleName | None = None,
    /,
    *,
    shown: ShownOptions,
    settings: LineSettings,
    output: OutputOptions,
    json: bool = False,
) -> int:
    """Simulate one schedule: times, bubble, memory, lower bound and picture.

    Prints one sentence, a plain-text diagram and a table. Without `--output` and `--json` it also draws `pipeline_NAME.png`;
    `--no-visualization` omits both pictures. Exits with 1 if a rank exceeds its memory limit.

    Parameters
    ----------
    name
        Name of a schedule (see `pipeplan list schedules`), a CSV, JSON or text file with one, or `-` for standard input.
        Default: 1f1b.
    """
    query = request(() if name is None else (name,), settings, output, draws=not json)
    result = answers.simulated(query.name, query.settings)

    def picture() -> None:
        show_above(answers.view_of_result(result), query.look)

    text = partial(print_answer, result, shown, picture if query.pictures else None)
    deliver(result, query.outputs, json=json, look=query.look, text=text)
    return 0 if result.fits else 1


@command
def explain(
    name: ScheduleName | None = None,
    /,
    *,
    options: AllowOptions,
    shown: ShownOptions,
    settings: LineSettings,
    output: OutputOptions,
    json: bool = False,
) -> int:
    """Explain why each rank idles, and what would help.

    Attributes every idle moment of a rank to one reason, shows what the critical path consists of, and simulates the
    effect of changes. A measured timeline is explained with its measured times.

    Parameters
    ----------
    name
        Name of a schedule (see `pipeplan list schedules`), a CSV or JSON file with a schedule or a timeline, or a folder of
        traces. Default: 1f1b.
    """
    query = request(() if name is None else (name,), settings, output)
    explanation = answers.explained(query.name, query.settings, allow=options.allow)
    deliver(explanation, query.outputs, json=json, look=query.look, text=partial(print_answer, explanation, shown))
    return 0 if explanation.result.fits else 1
