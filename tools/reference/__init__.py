"""The pages in docs/reference/, and documents for programs, made from the code."""
