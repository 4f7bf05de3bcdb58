"""What each read shows, from one snapshot of Postgres."""
