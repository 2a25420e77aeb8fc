"""Files, other packages' containers, the command line."""
