"""STAPLE: a generator of all the translations that learners would write (Mayhew et al. 2020)."""
