"""An open-loop HTTP load: requests are due at fixed times, and every one of them is accounted for."""
