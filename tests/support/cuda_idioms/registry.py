"""All idioms, by what they are about."""

from tests.support.cuda_idioms import (
    allocator,
    autograd,
    dataloader,
    double_buffers,
    downloads,
    events,
    graphs,
    host_threads,
    optimizers,
    pinned_uploads,
    prefetch,
    streams,
)
from tests.support.cuda_idioms.idiom import Idiom

TOPICS = (
    streams,
    events,
    pinned_uploads,
    downloads,
    allocator,
    double_buffers,
    prefetch,
    optimizers,
    autograd,
    dataloader,
    graphs,
    host_threads,
)

IDIOMS = tuple(each for topic in TOPICS for each in vars(topic).values() if isinstance(each, Idiom))
"""In the order of their files."""
