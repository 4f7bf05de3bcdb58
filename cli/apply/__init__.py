"""`rollway apply`: a file of deployments becomes commands."""
