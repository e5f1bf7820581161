"""Scorers of texts, such as for toxicity (`mrs_core.text_services.Scorer`); `opening.open_scorer` finds one by name."""
