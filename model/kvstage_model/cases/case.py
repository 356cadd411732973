"""A case: one public bug as a scheme, and its fixes."""

from dataclasses import dataclass
from enum import Enum

from ..language.parameters import SchemeFunction


class Edge(Enum):
    """The order that is missing, by what must come first and what must wait."""

    UPLOAD_READ_HOST_WRITE = "a copy or kernel reads host memory -> the host writes it again"
    UPLOAD_READ_RELEASE = "a copy reads memory -> it is given to another user"
    DOWNLOAD_WRITE_HOST_READ = "a copy writes host memory -> the host reads or writes it"
    COMPUTE_WRITE_STORE_READ = "a kernel writes rows -> a copy on another stream reads them"
    COMPUTE_READ_LOAD_WRITE = "a kernel uses rows -> a copy on another stream overwrites them"
    LOAD_WRITE_COMPUTE_READ = "a copy writes rows -> a kernel on another stream reads them"
    TRANSFER_TRANSFER = "a transfer uses a slot -> another transfer uses it"
    STREAM_REUSE = "work on one stream uses memory -> work on another stream gets it from the allocator"
    NONE = "none: the order is right, and the rows are wrong"


@dataclass(frozen=True, eq=False)
class Fix:
    """A repair in words, and the scheme with it. A repair that was merged first and was not enough is `incomplete`."""

    words: str
    scheme: SchemeFunction
    incomplete: bool = False


@dataclass(frozen=True, eq=False)
class Case:
    """A public bug: its name here, what goes wrong, where it was reported, and the loop as it was.

    `agents` are who takes part. `theorem` is the one that the bug breaks: T1 if it is a race, T3 if rows are wrong without one, T7
    if an access leaves its buffer.
    """

    name: str
    title: str
    reports: tuple[str, ...]
    agents: tuple[str, ...]
    edge: Edge
    missing: str
    bug: SchemeFunction
    fixes: tuple[Fix, ...]
    theorem: str = "T1"
