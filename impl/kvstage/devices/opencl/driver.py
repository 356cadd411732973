"""Finding OpenCL: pyopencl, and a CPU device whose memory is the host's own; or an error that says what to install."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ...errors import OpenCLMissingError

INSTALL = "pip install 'kvstage[opencl]' installs pyopencl and PoCL, an OpenCL driver for CPUs"
CACHE = "Where it is installed, see that XDG_CACHE_HOME, or else HOME, can be written to: PoCL shows no device without"


@dataclass(frozen=True, slots=True)
class Driver:
    """The module pyopencl, and a context on one CPU device."""

    cl: Any
    context: Any


def find() -> Driver:
    """The first OpenCL device that is a CPU. Raises OpenCLMissingError if there is none."""
    try:
        cl: Any = import_module("pyopencl")
    except ImportError as error:
        raise OpenCLMissingError(f"pyopencl can't be imported ({error}): {INSTALL}") from error
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        raise OpenCLMissingError(f"there is no OpenCL driver ({error}): {INSTALL}. {CACHE}") from error
    devices = [device for platform in platforms for device in platform.get_devices()]
    cpus = [device for device in devices if device.type & cl.device_type.CPU and device.host_unified_memory]
    if not cpus:
        names = ", ".join(device.name for device in devices) or "none"
        raise OpenCLMissingError(f"no OpenCL device here is a CPU (found: {names}): {INSTALL}. {CACHE}")
    return Driver(cl, cl.Context(cpus[:1]))
