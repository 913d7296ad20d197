"""What can go wrong, by whose turn it is to act."""


class HedaError(Exception):
    """Whatever Heda raises."""


class InputError(HedaError, ValueError):
    """Bad usage or input: the caller corrects it. The message says how."""


class NotFittedError(InputError, AttributeError):
    """An estimator was asked before it was fitted."""


class RefusedError(HedaError):
    """A provider's policy or budget does not allow it."""


class PeerError(HedaError):
    """A peer or the network failed."""


class Interrupted(HedaError):  # noqa: N818 - nothing is wrong: the job goes on later
    """A job stopped in good order; ``resume=True`` goes on from its checkpoint."""


class HedaBug(HedaError):  # noqa: N818 - the name says what to think of it
    """A defect of Heda. Please report it with its message."""


class BoundsWarning(UserWarning):
    """Bounds were read from the rows, which makes them as private as the rows."""


class UnprotectedWarning(UserWarning):
    """A run that can be repeated protects nothing."""
