"""A CUDA runtime without a GPU for engines in C++, and `kvstage cpp`, which runs their own tests under schedules.

The runtime is C++: `include/` and `kvstage_cuda.cpp`. Here is what runs a program that is linked with it, and reads what it
leaves behind. Read first: docs/cpp.md, then `command`, `program`, `findings`.
"""

from pathlib import Path

ROOT = Path(__file__).parent
INCLUDE = ROOT / "include"
"""The folder of `cuda_runtime.h`, `cuda.h` and `hip/hip_runtime.h`."""
SOURCE = ROOT / "kvstage_cuda.cpp"
"""The one file to compile, without sanitizers, and to link."""
CMAKE = ROOT / "cmake"
"""The folder of the CMake package `kvstage`."""
