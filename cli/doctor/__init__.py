"""`rollway doctor`: the questions about an installation, a row for each."""
