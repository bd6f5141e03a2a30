"""Weighted estimates: given weights, calibration to known margins, standardization."""
