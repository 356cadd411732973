// cudaProfilerStart and cudaProfilerStop, which have nothing to do here.
#pragma once
#include "cuda_runtime.h"
