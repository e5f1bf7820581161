"""Files and storages: whole or not at all, local or remote."""
