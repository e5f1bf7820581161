"""`lm_eval --include_path $(python -m mrs_suggest.integrations.lm_eval)`: prints the folder of the task files."""

from mrs_suggest.integrations.lm_eval.make_files import FOLDER

print(FOLDER)
