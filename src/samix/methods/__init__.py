"""Methods: what is learned from images, and how a policy or a Mixer joins in."""
