"""A canary judged as the evidence comes in, with chances of error that hold however often one looks."""
