"""One cycle of a deployment: evaluate, classify, and what it leaves behind."""
