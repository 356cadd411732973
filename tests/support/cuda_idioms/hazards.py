"""Patterns of public bugs, wrong and repaired."""

from tests.support.cuda_idioms import hazards_of_the_device, hazards_of_the_host
from tests.support.cuda_idioms.idiom import Idiom

HAZARDS = tuple(
    each for module in (hazards_of_the_host, hazards_of_the_device) for each in vars(module).values() if isinstance(each, Idiom)
)
"""In the order of their files; `wrong` is the bug, `right` the repair, and the source begins with the public report."""
