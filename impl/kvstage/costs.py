"""What a transfer costs, by a model that is told once: for `scheme="auto"`, and for benchmarks that compare it with clocks.

    t = waits * wait + copies * copy + launches * launch + bytes / bandwidth + bytes that the host copies / host_bandwidth

Nothing overlaps in it, so it is too high for rings, which copy while the host works: it ranks schemes, and predicts none.
"""

from dataclasses import dataclass, replace

from kvstage_model.language.buffers import Memory
from kvstage_model.schemes.counts import Counts


@dataclass(frozen=True, slots=True)
class Costs:
    """What a device takes: seconds for each wait, copy and kernel, and bytes a second.

    `kernels` is the memory that kernels of the device read and write, packed rows in it: DEVICE for any kernels at all,
    PINNED and PAGEABLE where they reach the host's. `source` says where the numbers are from.
    """

    wait: float
    copy: float
    launch: float
    bandwidth: float
    host_bandwidth: float
    kernels: frozenset[Memory]
    source: str

    def seconds(self, counts: Counts, row_bytes: int) -> float:
        """The time of a transfer that asks for so much, with rows of so many bytes."""
        work = counts.waits * self.wait + counts.copies * self.copy + counts.launches * self.launch
        return work + row_bytes * (counts.moved / self.bandwidth + counts.taken / self.host_bandwidth)


PCIE_5_LEAST = Costs(
    wait=4.5e-6,
    copy=2.3e-6,
    launch=3e-6,
    bandwidth=53e9,
    host_bandwidth=14e9,
    kernels=frozenset({Memory.DEVICE, Memory.PINNED}),
    source="published for PCIe 5 x16, the least",
)
"""An accelerator behind PCIe 5, 16 lanes: the least that was reported.

The link carries 32 GT/s * 16 lanes * 128/130 = 63 GB/s, of which 52 to 54 arrive behind packet headers and flow control. A
small `cudaMemcpyAsync` takes 2.3 to 7 us (5 to 7: "DualPath", arXiv 2602.21548, section 5.2), a wait 4.5 to 16 us, a kernel
about 3 us to launch, and one core copies 13 to 16 GB/s.
"""
PCIE_5_MOST = replace(PCIE_5_LEAST, wait=16e-6, copy=7e-6, source="published for PCIe 5 x16, the most")
"""The most that was reported for the same."""
PCIE_5 = replace(PCIE_5_LEAST, wait=10e-6, copy=5e-6, source="published for PCIe 5 x16")
"""In the middle of both."""
PCIE_4 = replace(PCIE_5, bandwidth=25e9, source="published for PCIe 4 x16")
"""Behind PCIe 4: 16 GT/s, so half of it."""
HOST = Costs(
    wait=1e-6,
    copy=3e-6,
    launch=1e-5,
    bandwidth=10e9,
    host_bandwidth=10e9,
    kernels=frozenset(Memory),
    source="memory that the host addresses",
)
"""`HostDevice`: no wait blocks, and a kernel is one call of numpy. Only the order of its schemes matters, not the numbers."""
