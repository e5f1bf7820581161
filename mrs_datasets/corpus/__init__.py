"""Text files cleaned, deduplicated and filtered for pretraining, as CCNet does (Wenzek et al. 2020)."""
