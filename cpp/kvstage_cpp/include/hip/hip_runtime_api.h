// The same, by the name of the C++ runtime API.
#pragma once
#include "hip_runtime.h"
