"""Engine: turns a recipe into a run folder."""
