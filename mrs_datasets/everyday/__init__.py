"""The everyday exchanges that ship with the package, and their reader."""
