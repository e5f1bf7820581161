"""Languages, texts, prediction files."""
