"""Tasks of lighteval: `--custom-tasks mrs_integrations.lighteval.tasks`."""
