"""`rollway demo`: a rolling update and a rollback under load."""
