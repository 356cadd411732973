// The same declarations, by the name that C++ code of the runtime API may include.
#pragma once
#include "cuda_runtime.h"
