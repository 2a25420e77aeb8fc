"""What the chapters derive, short and slow: the oracles of the tests."""
