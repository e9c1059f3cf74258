"""Methods: what is learned from images, with labels or without, and what wraps a method."""
