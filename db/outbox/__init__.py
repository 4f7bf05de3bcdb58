"""What subscriptions are still to be told: written in the transaction that it is about, claimed to be sent."""
