"""Graph rewrites: express the same network in operators that a CPU computes faster."""

from functools import partial

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports

# In the order in which they are applied, each to the result of the one before.
NAMES = (
    "fold_batch_norm",
    "inverted_residual",
    "fewer_products",
    "plain_layout",
    "pooled_convolution",
    "dead_taps",
    "pad_channels",
    "relu6",
    "pool_first",
    "resize_by_products",
)
# On request only: to fold batch norms, whose trained filters have to be scaled again in every step,
# so that training did not become faster; and what needs a compiler.
USUAL, KERNELS = NAMES[5:], NAMES[1:5]


def chosen(switch: str) -> tuple[str, ...]:
    """Return the names of the rewrites that a value of the switch selects.

    >>> chosen("usual")
    ('dead_taps', 'pad_channels', 'relu6', 'pool_first', 'resize_by_products')

    Raises:
        PlanError: the value has a name that does not exist.
    """
    if switch == "none":
        return ()
    found: list[str] = []
    for name in switch.split("+") if isinstance(switch, str) else [switch]:
        if name != "usual" and name not in NAMES:
            raise PlanError(
                f"graph_rewrites={switch!r}: no rewrite is called {name!r}; take none, or some of "
                f"usual, {', '.join(NAMES)} joined by +"
            )
        found += USUAL if name == "usual" else [name]
    return tuple(found)


class GraphRewrites(Method):
    """Rewrites the network, or the part that is trained, for the shape of the recipe's samples."""

    switches = ("graph_rewrites",)

    @classmethod
    def check(cls, plan):
        """Refuse unknown names of rewrites, GPUs, and mixed precision.

        AMP inserts casts that MXNet leaves out when a graph is written as text, which is how it is
        rewritten: the network would be computed in float32.
        """
        if chosen(plan.graph_rewrites) and plan.device_kind == "gpu":
            raise PlanError(
                f"graph_rewrites={plan.graph_rewrites!r} selects operators that are faster on a "
                "CPU, and were never timed on a GPU; set graph_rewrites='none'"
            )
        if chosen(plan.graph_rewrites) and plan.precision in ("amp", "bfloat16"):
            raise PlanError(
                f"graph_rewrites={plan.graph_rewrites!r} would compute in float32 and not in "
                f"precision={plan.precision!r}, whose casts a rewritten graph lacks; set "
                "graph_rewrites='none', or precision='float32'"
            )

    @classmethod
    def environment(cls, plan):
        """Return the variable for the memory that MXNet's operators need while they compute.

        By default they take turns with four such memories, so that several can compute at once on
        a device. Beside kernels, each of which uses all cores, one is enough.
        """
        kernels = set(chosen(plan.graph_rewrites)) & set(KERNELS)
        alone = len(plan.device_indices) == 1
        return {"MXNET_CPU_TEMP_COPY": "1"} if kernels and alone else {}

    def network(self, run, net):
        """Return the rewritten network, or the network itself if no rewrite is selected."""
        from mxopt.methods.graph_rewrites.rewriting import optimize

        rewrites = chosen(run.plan.graph_rewrites)
        if not rewrites:
            return net
        adds = run.plan.grad_accumulation > 1
        return run.replace_trained(net, partial(optimize, rewrites=rewrites, adds=adds))


_REWRITING = ("Optimized", "REWRITES", "optimize")
__getattr__ = exports(
    __name__, **dict.fromkeys(_REWRITING, "rewriting"), folded="fold_for_inference"
)
