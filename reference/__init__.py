"""The pages in docs/reference/, made from the code."""
