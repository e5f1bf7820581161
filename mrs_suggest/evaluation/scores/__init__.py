"""What `mrs score` computes: metrics as records with options, systems, tables and notes."""
