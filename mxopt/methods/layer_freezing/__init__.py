"""Layer freezing: keep the weights of the first stages, and run them in preprocessing."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class LayerFreezing(Method):
    """Splits the network; the frozen part is appended to every transform."""

    switches = ("freeze_stages",)

    @classmethod
    def check(cls, plan):
        """Refuse switches that do not support stages within the transform."""
        stages = f"freeze_stages={plan.freeze_stages}"
        if plan.freeze_stages and plan.num_workers:
            raise PlanError(f"{stages}: the stages run in the training process; set num_workers=0")
        if plan.freeze_stages and plan.precision == "float16":
            raise PlanError(f"{stages}: the stages stay in float32; take precision='amp'")
        if plan.freeze_stages and plan.image_dtype == "uint8":
            raise PlanError(
                f"{stages}: what is kept is the float32 output of the stages; "
                "take image_dtype='float32'"
            )

    def network(self, run, net):
        """Split the network, so that only its second part is trained."""
        from mxopt.methods.layer_freezing.freezing import split

        if run.plan.freeze_stages:
            run.frozen, run.learning = split(net, run.plan.freeze_stages)
        return net

    def transform(self, run, transform):
        """Return the transform followed by the frozen stages."""
        from mxopt.methods.layer_freezing.freezing import preprocessing

        return preprocessing(run.frozen, transform, run.plan) if run.frozen else transform


__getattr__ = exports(__name__, split="freezing", preprocessing="freezing")
