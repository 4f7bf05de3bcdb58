"""What works on Rollway and is not part of it: measurements, proofs, mutants, and the writer of docs/reference/."""
