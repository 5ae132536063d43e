"""Layer freezing: stages that do not learn become part of preprocessing."""
