"""Files and views of tasks other than replies."""
