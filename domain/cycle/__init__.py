"""One cycle of a deployment: evaluate, classify, and the effects of the decision."""
