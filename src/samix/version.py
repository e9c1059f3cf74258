"""The version, on its own so that packaging can read it."""

__version__ = "0.1.0"
