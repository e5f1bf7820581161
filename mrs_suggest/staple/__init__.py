"""Systems for STAPLE (Mayhew et al. 2020): many translations of a prompt, decoded, filtered, combined and analysed.

Between all steps lies a file of hypotheses, see `mrs_suggest.staple.hypotheses`.
"""
