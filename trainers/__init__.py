"""Launchable trainers; installed as `mrs_trainers`."""
