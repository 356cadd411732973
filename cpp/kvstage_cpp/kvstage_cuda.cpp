// kvstage's CUDA runtime without a GPU: the one file to compile, C++17 or newer, WITHOUT sanitizers, and to link with a program that has them.
//
//   g++ -std=c++17 -O2 -g -c kvstage_cuda.cpp
//   g++ -std=c++17 -O1 -g -fsanitize=thread -I include engine.cpp kvstage_cuda.o
//
// Read first: runtime/operations.hpp (what a stream is), runtime/device.hpp (what makes it go on), runtime/copies.hpp (what the host waits for).
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#error "compile kvstage_cuda.cpp without -fsanitize, or with -fno-sanitize=all after it: ThreadSanitizer must not see what it does for itself"
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#error "compile kvstage_cuda.cpp without -fsanitize, or with -fno-sanitize=all after it: ThreadSanitizer must not see what it does for itself"
#endif
#endif

#include "include/cuda_runtime.h"
#include "runtime/api_device.hpp"
#include "runtime/watchdog.hpp"
