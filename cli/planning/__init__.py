"""Commands that look ahead, or back, and touch nothing."""
