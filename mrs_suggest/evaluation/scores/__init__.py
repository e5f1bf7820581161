"""The computations of `mrs score`: metrics as records with options, systems, tables and notes."""
