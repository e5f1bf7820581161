"""Cards, pages, tables and pictures."""
