"""Rules for comments and pairs: filter, language, masks, cleaning, near duplicates."""
