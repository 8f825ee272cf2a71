"""Reviews of configurations: readers of every trainer's files, rules as rows, findings, and patches."""

from pipeplan.reviewing.conversion import configured, missing_facts
from pipeplan.reviewing.edits import Patch, patched, plain, spelling
from pipeplan.reviewing.estimating import Estimated
from pipeplan.reviewing.facts import NotSet, ReviewFacts, SettingPlace
from pipeplan.reviewing.improving import VerifiedChange, combined, estimate_or_none, improvements
from pipeplan.reviewing.readers import Reading, read_configurations, read_text_of
from pipeplan.reviewing.rule import SEVERITIES, RuleFault, RuleRow, Severity, judged
from pipeplan.reviewing.rules import RULES
from pipeplan.reviewing.settings import SETTINGS

__all__ = [
    "RULES",
    "SETTINGS",
    "SEVERITIES",
    "Estimated",
    "NotSet",
    "Patch",
    "Reading",
    "ReviewFacts",
    "RuleFault",
    "RuleRow",
    "SettingPlace",
    "Severity",
    "VerifiedChange",
    "combined",
    "configured",
    "estimate_or_none",
    "improvements",
    "judged",
    "missing_facts",
    "patched",
    "plain",
    "read_configurations",
    "read_text_of",
    "spelling",
]
