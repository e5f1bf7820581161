"""Models and HTTP services that passes over data call."""
