"""Rules that choose among hypotheses, by name."""

from mrs_suggest.staple.rules.base import Rule
from mrs_suggest.staple.rules.expected_f1 import ExpectedF1
from mrs_suggest.staple.rules.simple import Threshold, Top, Votes
from mrs_suggest.staple.rules.soft_f1 import SoftF1
from mrs_suggest.staple.rules.trees import Classifier

RULES: dict[str, type[Rule]] = {rule.name: rule for rule in (Top, Threshold, Votes, Classifier, SoftF1, ExpectedF1)}
