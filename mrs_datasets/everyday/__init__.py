"""The everyday exchanges that ship with the package, and what reads them."""
