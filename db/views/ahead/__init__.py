"""Reads for what is foretold: plans, forecasts, and why something waits."""
