"""`rollway demo`: a rolling update, a rollback and a judged canary under load."""
