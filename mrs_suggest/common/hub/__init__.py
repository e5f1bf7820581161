"""The hub, the models and data that are installed, and where everything comes from."""
