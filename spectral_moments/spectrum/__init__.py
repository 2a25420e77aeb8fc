"""What the moments say about the spectrum."""
