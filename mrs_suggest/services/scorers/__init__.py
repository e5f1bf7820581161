"""Scorers of texts, such as for toxicity (`mrs_suggest.common.text.text_services.Scorer`); `opening.open_scorer` finds
one by name."""
