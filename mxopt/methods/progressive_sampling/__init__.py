"""Progressive sampling: train the first epochs on a part of the samples."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class ProgressiveSampling(Method):
    """Ends the first epochs early, and each one later than the one before."""

    switches = ("sampling_start", "sampling_epochs")

    @classmethod
    def check(cls, plan):
        """Refuse shares of 0 and above 1, and a growth that does not end within the training."""
        start = plan.sampling_start
        if start is None:
            return
        if not 0 < start <= 1:
            raise PlanError(
                f"sampling_start={start} must be a share of the samples, above 0 and at most 1"
            )
        if not plan.sampling_epochs < plan.epochs:
            raise PlanError(
                f"sampling_epochs={plan.sampling_epochs} leaves no epoch with all samples; it must "
                f"be less than epochs={plan.epochs}"
            )

    def training_loader(self, run, loader, epoch):
        """Return the loader, or its first batches in the first epochs.

        Every epoch has an order of its own, so these are other samples each time.
        """
        start, epochs = run.plan.sampling_start, run.plan.sampling_epochs
        if start is None or epoch >= epochs:
            return loader
        from mxopt.methods.progressive_sampling.fewer import FirstBatches, share

        return FirstBatches(loader, share(epoch, start, epochs))


__getattr__ = exports(__name__, FirstBatches="fewer", share="fewer")
