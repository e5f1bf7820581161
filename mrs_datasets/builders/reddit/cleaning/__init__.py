"""What a comment or pair must be to stay."""
