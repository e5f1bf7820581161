"""From a message to three suggestions: index, ranking, guard, language."""
