"""What a case of the search is a case of."""

from __future__ import annotations

from collections.abc import Iterator

from tests.extensions.search.case import Case


def tags(case: Case) -> Iterator[str]:
    """The kinds of a case."""
    halves = [one + other for one, other in zip(case.inputs, case.weights, strict=True)]
    for name, holds in {
        "B < I+W": any(full < half for full, half in zip(case.backward, halves, strict=True)),
        "B <= I": any(full <= half for full, half in zip(case.backward, case.inputs, strict=True)),
        "B > I+W": any(full > half for full, half in zip(case.backward, halves, strict=True)),
        "overlap": case.overlap is not None,
        "pairs": case.pairs is not None,
        "transfer": case.transfer > 0,
        "uneven stages": len(set(zip(case.forward, case.backward, case.inputs, case.weights, strict=True))) > 1,
        "span": case.objective == "span",
        "full backward": not case.split,
    }.items():
        if holds:
            yield name
    if case.limits is None:
        yield "no limit"
        return
    activation, kept = case.held()
    yield "limit in activations" if case.in_activations else "limit in bytes"
    for name, holds in {
        "limits per rank": len(set(case.limits)) > 1,
        "static": case.static is not None and not case.in_activations,
        "W frees more than all": any(part > one for part, one in zip(kept, activation, strict=True)),
        "W frees a part": any(0 < part < one for part, one in zip(kept, activation, strict=True)),
        "W frees nothing": any(part == 0 for part in kept),
    }.items():
        if holds:
            yield name
