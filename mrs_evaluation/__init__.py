"""Systems beside each other: their scores on the same examples, tables, prediction files, human evaluation."""
