"""What happens while an expression runs: values and their operations, builtins, budgets."""
