"""Translation with a Transformer: the third recipe of the chapter."""
