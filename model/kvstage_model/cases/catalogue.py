"""All cases; reports that are instances of one of them; and what is out of reach, with the reason and what a PROVED then misses."""

from . import allocator, between_streams, downloads, host_overwrites, lifetimes, negatives, staging_slots, wrong_events
from .case import Case

FILES = (host_overwrites, staging_slots, lifetimes, downloads, between_streams, wrong_events, allocator, negatives)
CASES: dict[str, Case] = {case.name: case for file in FILES for case in file.CASES}
"""Each case by its name, sorted by the missing edge."""

INSTANCES: dict[str, tuple[str, str]] = {
    "H05": ("H04", "the fence is there only with one configuration, and another one gives the host the same lead"),
    "H11": ("H01", "six host arrays that are used again, on an NPU"),
    "H14": ("H15", "fill, copy, forward, fill: the smallest trace"),
    "H16": ("H06", "a double buffer that one of two graph runners lacks"),
    "H21": ("H18", "the event is dropped, since it was kept under the pointer of a slice and not of its allocation"),
    "H24": ("H10", "one branch of the copies lacks the wait for its event"),
    "H26": ("H01", "scratch memory of one backend, reused by another that has no inputs to wait for"),
    "H27": ("H10", "a flag says that no wait is needed after the first"),
    "H29": ("H01", "a view of the live buffer in place of a copy"),
    "H34": ("H31", "the synchronize after an asynchronous copy is missing"),
    "H35": ("H31", "what torch documents of non_blocking copies to and from the CPU"),
    "H37": ("H18", "pinned pages are used again while a forked child reads them"),
    "H41": ("H40", "the same in a second connector: scheduled is not computed"),
    "H43": ("H40", "a network card reads in place of the store stream: its thread waits for the chunk's event before it posts"),
    "H45": ("H40", "the write stream does not wait for the forward"),
    "H48": ("H47", "a zeroing kernel, or a step under way, writes after remote rows have landed"),
    "H51": ("H47", "a load writes blocks that running requests read"),
    "H52": ("H47", "the event of another process is ignored by the load"),
    "H55": ("H54", "two pools share a key, so one record replaces the other"),
    "H59": ("H50", "the consumer does not wait for the transfer stream"),
    "H63": ("H64", "storage is resized to nothing under a copy to the host"),
    "H65": ("H64", "the reduction stream is not recorded"),
    "H68": ("H64", "weights are freed at the host's word, and compute still reads them"),
    "H69": ("H62", "events order the work, and not the allocator"),
    "H70": ("H62", "a stack of temporary memory for several streams"),
    "H75": ("H72", "blocks are released by the request, and a remote write is still to come"),
    "H76": ("H72", "one of several handles has failed, and its siblings still write"),
    "H77": ("H72", "an allocation that the connector is not told of"),
    "H78": ("H72", "a window's block is freed under a step that was dispatched"),
    "N06": ("N09", "a layer index compared with a group index"),
    "N10": ("N09", "block ids beyond the capacity of one rank's pool"),
    "N13": ("N19", "a failed transfer counts as complete"),
    "N14": ("N19", "the last layer is never yielded"),
    "N24": ("N09", "page ids go on across a head boundary"),
}
"""A report that is another case's pattern: that case, and how it shows there."""

OUT_OF_REACH: dict[str, str] = {
    "H08": "its fix relies on copies of pageable memory that read their source within the call: needs an attribute of the copy",
    "H20": "the same: safe as long as the source is pageable",
    "H22": "a captured graph reads its host address at every replay: needs graphs",
    "H23": "the same: memory that a captured graph names must be retained",
    "H28": "descriptor arrays that are read when the batch runs: needs descriptors as buffers",
    "H30": "a copy of pageable memory returns before its target is written: needs that attribute, and the legacy stream",
    "H38": "two host threads share one list of work: needs threads at the host",
    "H42": "a thread posts to a network card after work of another thread's stream: needs threads and agents outside streams",
    "H81": "no wrong bytes: a wait that takes longer than it must",
    "H82": "a card reads the send buffer: needs agents outside streams",
    "H84": "a region is taken under a lock and its event is registered later: needs threads at the host",
    "H85": "the cause was not established",
    "N01": "wrong strides inside a row: kvstage moves whole rows, whose bytes the pool alone knows",
    "N02": "the same",
    "N03": "the same",
    "N04": "the same: the shape was misread",
    "N11": "a kernel's own packing of two slots in one word",
    "N12": "two processes map two files: no copy is involved",
    "N16": "barriers inside a kernel: kernels are one access here",
    "N17": "a decision on host metadata between two look-ups",
    "N18": "a hit is computed wrongly: no copy is involved",
    "N20": "arithmetic of a kernel",
    "N21": "a cause that was taken back",
    "N23": "a claim that the maintainers did not confirm",
}
"""Why a report has no case. A scheme that has such a fault may be PROVED: the model does not see it."""
