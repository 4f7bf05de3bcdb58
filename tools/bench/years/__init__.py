"""`make years`: whether anything grows without end, at ten rollouts a minute and with days that are minutes."""
