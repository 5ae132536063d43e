"""What the notebooks measure on each tier: sizes, plans and levers.

The chapter's notebooks, the guides to the application layer and the nine tips, and those to the
checklist and best practices have a module each, with ``SETTINGS`` by notebook and tier, ``NEEDS``,
the data sets that are read on each tier, and ``HEADLINES``, the pairs of each experiment that the
README shows, named before anything is measured.
"""

from __future__ import annotations

from mxopt.chapter.settings import chapter, checklist, guides

MODULES = (chapter, guides, checklist)
SETTINGS = {name: tiers for module in MODULES for name, tiers in module.SETTINGS.items()}
HEADLINES = {name: pairs for module in MODULES for name, pairs in module.HEADLINES.items()}


def data_sets(notebook: str) -> dict[str, tuple]:
    """Return the names of the data sets that a notebook reads, by tier.

    Args:
        notebook: its name in ``SETTINGS``.
    """
    return next(module.NEEDS for module in MODULES if notebook in module.SETTINGS)
