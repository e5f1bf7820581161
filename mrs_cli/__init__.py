"""The `mrs` command: one thin file a verb."""
