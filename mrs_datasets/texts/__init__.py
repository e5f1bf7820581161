"""Plain texts as sources."""
