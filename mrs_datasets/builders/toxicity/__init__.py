"""Drops toxic pairs and replies from a prepared folder by what scorers say (Zhang et al. 2021, section 2.2)."""

from __future__ import annotations

from mrs_datasets.builders.toxicity.folder_pass import ToxicityPass
from mrs_datasets.builders.toxicity.rules import Rule, english_rule, multilingual_rule

__all__ = ["Rule", "ToxicityPass", "english_rule", "multilingual_rule"]
