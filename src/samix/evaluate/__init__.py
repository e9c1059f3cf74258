"""Evaluation: accuracy, calibration, object retention."""
