"""The `mrs` command: one thin file per verb."""
