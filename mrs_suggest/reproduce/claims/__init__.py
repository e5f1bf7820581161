"""A paper's claims as tests on the scores of reproduced runs."""
