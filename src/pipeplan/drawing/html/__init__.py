"""Interactive timelines: self-contained pages that need no network.

The drawing code is TypeScript in ``web_ui/``; ``assets/`` contains the scripts and style sheets built from it.
``timeline`` defines ``pipeplan.mountTimeline(element, data, options)``; ``report``, which uses it, fills the page of a
comparison, or of a run next to its plan.
"""

from pipeplan.drawing.html.page import (
    ReportPage,
    archived,
    asset,
    html_page,
    packed,
    report_data,
    report_page,
    themes_for,
    timeline_data,
)
