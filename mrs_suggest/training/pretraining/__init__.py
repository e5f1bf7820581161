"""Continued pretraining of encoders: text, its rows of tokens, the objectives, and the card."""
