"""Data: sets of pictures, views of them, and batches that depend on nothing but seed and step."""
