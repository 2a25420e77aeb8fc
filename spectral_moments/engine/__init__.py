"""Sums over cycles: sources, views, families, reduction."""
