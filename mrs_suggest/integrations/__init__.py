"""Tasks and adapters for the tools that people already use; each subpackage needs the extra of its tool."""
