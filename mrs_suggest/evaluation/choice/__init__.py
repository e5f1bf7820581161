"""Multiple choice: answers, tables and paired tests."""
