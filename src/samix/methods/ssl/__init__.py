"""Self-supervised methods, one algorithm each."""
