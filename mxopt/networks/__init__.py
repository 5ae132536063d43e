"""Networks of the project's own, one module each, and the reader of the weights they start from."""
