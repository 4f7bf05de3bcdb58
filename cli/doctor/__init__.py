"""`rollway doctor`: what is asked of an installation, a row for each question."""
