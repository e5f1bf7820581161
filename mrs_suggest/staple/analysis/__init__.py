"""Reports on STAPLE systems: errors, pictures, effects of their properties."""
