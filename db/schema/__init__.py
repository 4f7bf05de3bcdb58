"""The schema: tables, and the triggers that hold the budgets."""
