"""Names of pipeplan.extensions.review, made by ``python -m docs.build.stubs --write``."""

from pipeplan.extensions.review.conversion import configured as configured
from pipeplan.extensions.review.conversion import missing_facts as missing_facts
from pipeplan.extensions.review.edits import Patch as Patch
from pipeplan.extensions.review.edits import patched as patched
from pipeplan.extensions.review.edits import plain as plain
from pipeplan.extensions.review.edits import spelling as spelling
from pipeplan.extensions.review.estimating import Estimated as Estimated
from pipeplan.extensions.review.facts import NotSet as NotSet
from pipeplan.extensions.review.facts import ReviewFacts as ReviewFacts
from pipeplan.extensions.review.facts import SettingPlace as SettingPlace
from pipeplan.extensions.review.improving import VerifiedChange as VerifiedChange
from pipeplan.extensions.review.improving import combined as combined
from pipeplan.extensions.review.improving import estimate_or_none as estimate_or_none
from pipeplan.extensions.review.improving import improvements as improvements
from pipeplan.extensions.review.patches import Patches as Patches
from pipeplan.extensions.review.patches import patches_of as patches_of
from pipeplan.extensions.review.readers import Reading as Reading
from pipeplan.extensions.review.readers import read_configurations as read_configurations
from pipeplan.extensions.review.readers import read_text_of as read_text_of
from pipeplan.extensions.review.rule import RuleFault as RuleFault
from pipeplan.extensions.review.rule import RuleRow as RuleRow
from pipeplan.extensions.review.rule import SEVERITIES as SEVERITIES
from pipeplan.extensions.review.rule import Severity as Severity
from pipeplan.extensions.review.rule import judged as judged
from pipeplan.extensions.review.rules import RULES as RULES
from pipeplan.extensions.review.settings import SETTINGS as SETTINGS
