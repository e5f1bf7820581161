"""Any set of runs of one task side by side: groups over seeds, tables by language, leads, files."""
