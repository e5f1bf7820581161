"""Search and sampling of replies."""
