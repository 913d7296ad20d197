"""Checks of scikit-learn that cannot pass, and why. At most five."""

EXPECTED: dict[str, str] = {}
