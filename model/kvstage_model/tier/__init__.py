"""Which rows of a mirror are still right: the one decision of the host tier, by generation numbers of blocks.

Read `generations` first. The library keeps these records for each block, and moves the rows that the decision leaves out.
"""

from .generations import Block, Mirror, cut, mirrored, rewritten, still_right

__all__ = ["Block", "Mirror", "cut", "mirrored", "rewritten", "still_right"]
