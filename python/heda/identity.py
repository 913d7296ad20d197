"""Identities of parties: keys, certificates, fingerprints."""

from os import PathLike, fspath

from heda import _heda

__all__ = ["create"]


def create(name: str, folder: str | PathLike[str], *, days: int = 825) -> str:
    """Make a key and a certificate in a folder that holds none yet.

    Parameters
    ----------
    name : str
        The party's name in its certificate: small letters, digits, ``-`` and ``.``.
    folder : path
        Where ``key.pem``, ``certificate.pem`` and ``request.pem`` go. Nothing is overwritten; the key
        can be read by its owner only.
    days : int
        Days until the certificate expires.

    Returns
    -------
    str
        The fingerprint, which peers need.

    Examples
    --------
    >>> import heda, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> heda.identity.create("north", folder + "/identity").startswith("sha256:")
    True
    """
    return _heda.create_identity(name, fspath(folder), days)
