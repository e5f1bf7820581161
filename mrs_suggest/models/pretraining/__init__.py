"""Objectives of pretraining."""
