"""What wraps a method: hand-made policies, and the mixups that only self-supervised methods have."""
