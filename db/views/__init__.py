"""The reads for people. No lock is taken."""
