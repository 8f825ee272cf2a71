"""Reviews of configurations: readers of every trainer's files, rules as rows, findings, and patches."""

from pipeplan.foundation.lazy import lazy_names

_HOMES = {
    "conversion": "configured",
    "estimating": "Estimated",
    "facts": "NotSet ReviewFacts SettingPlace",
    "improving": "VerifiedChange combined estimate_or_none improvements",
    "missing": "missing_facts",
    "models": "properties_of_shape",
    "patches": "Patches patches_of",
    "readers": "Reading read_configurations read_text_of",
    "rule": "QUESTIONS SEVERITIES Judgement Question RuleFault RuleRow Severity UnjudgedRule judged judgement",
    "rules": "RULES",
    "settings": "SETTINGS",
    "spellings": "plain spelling",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
