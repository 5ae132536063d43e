"""Classification of garments: the recipe of the first guide."""
