"""The host tier: the host's copy of sequences, kept across steps; only rows that the pools gained or changed are moved.

Read `versions` first, which says of each block what happened to it; `host` keeps the copies. Which rows move is decided by
`kvstage_model.tier`, whose functions are proved.
"""

from .host import HostRead, HostSequence, HostTier
from .versions import BlockVersions

__all__ = ["BlockVersions", "HostRead", "HostSequence", "HostTier"]
