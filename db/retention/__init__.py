"""What is cut of the past: the rule of `domain.retention` in SQL, and the cut in small transactions."""
