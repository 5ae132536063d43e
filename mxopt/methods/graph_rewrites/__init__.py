"""Graph rewrites: the same network in operators that a CPU computes faster."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports

# In this order: what one leaves, the next one sees.
NAMES = ("fold_batch_norm", "dead_taps", "pad_channels", "relu6")
# Batch norms are folded only where that is asked for: filters that learn are scaled anew in every
# step, and training gained nothing (benchmarks/README.md).
USUAL = NAMES[1:]


def chosen(switch: str) -> tuple[str, ...]:
    """Return the rewrites that a value of the switch names.

    >>> chosen("usual")
    ('dead_taps', 'pad_channels', 'relu6')

    Raises:
        PlanError: it names one that does not exist.
    """
    if switch in ("none", "usual"):
        return USUAL if switch == "usual" else ()
    names = switch.split("+") if isinstance(switch, str) else [switch]
    for name in names:
        if name not in NAMES:
            raise PlanError(
                f"graph_rewrites={switch!r}: no rewrite is called {name!r}; take none, usual, or "
                f"some of {', '.join(NAMES)} joined by +"
            )
    return tuple(names)


class GraphRewrites(Method):
    """Rewrites the network when it was made, for the shape of the recipe's samples."""

    switches = ("graph_rewrites",)

    @classmethod
    def check(cls, plan):
        """Refuse the name of a rewrite that does not exist."""
        chosen(plan.graph_rewrites)

    def network(self, run, net):
        """Return the network in the operators of the rewritten graph."""
        from mxopt.methods.graph_rewrites.optimize import optimize

        rewrites = chosen(run.plan.graph_rewrites)
        return optimize(net, *run.example(), rewrites=rewrites) if rewrites else net


__getattr__ = exports(__name__, optimize="optimize", Optimized="optimize", REWRITES="optimize")
