"""Translators of texts: checkpoints of transformers, and their conversions for CTranslate2."""
