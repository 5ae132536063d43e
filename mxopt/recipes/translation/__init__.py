"""Translation with a Transformer: the chapter's third recipe."""
