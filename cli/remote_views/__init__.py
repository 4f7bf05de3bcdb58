"""What the reads for people are over HTTP."""
