"""What a request asks for, who asks, and how often."""
