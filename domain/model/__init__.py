"""The frozen values that decisions are made from and made of."""
