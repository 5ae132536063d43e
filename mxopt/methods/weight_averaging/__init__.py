"""Weight averaging: evaluate the mean of the weights of the last steps."""
