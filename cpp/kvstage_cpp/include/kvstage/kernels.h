// Kernels on the CPU: a stream that comes to one runs it thread after thread, half of its blocks first.
//
//   k<<<grid, block, shared, stream>>>(x)   is   kvstage_launch(grid, block, shared, stream)(k, x)   after `kvstage cpp convert`
//
// kvstage::on_stream runs any function of no arguments at its place in a stream: a CPU function in the place of a kernel that is not here.
// There is no __syncthreads: threads run one after the other. It is declared, so that a kernel that needs it fails when it is linked.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)

extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

void __syncthreads();

// CUDA has these without a header, in host code too.
#define KVSTAGE_MIN_MAX(T)                          \
    inline T min(T a, T b) { return a < b ? a : b; } \
    inline T max(T a, T b) { return a < b ? b : a; }
KVSTAGE_MIN_MAX(int)
KVSTAGE_MIN_MAX(unsigned int)
KVSTAGE_MIN_MAX(long)
KVSTAGE_MIN_MAX(unsigned long)
KVSTAGE_MIN_MAX(float)
KVSTAGE_MIN_MAX(double)
#undef KVSTAGE_MIN_MAX

extern "C" {
// Puts `run(closure)` into a stream, once for each thread of the grid; then, when all have run, `drop(closure)`.
cudaError_t kvstage_launch_kernel(dim3 grid, dim3 block, cudaStream_t stream, void (*run)(void*), void (*drop)(void*), void* closure);
}

namespace kvstage {

template <class F>
cudaError_t launch(dim3 grid, dim3 block, cudaStream_t stream, F function) {
    return kvstage_launch_kernel(
        grid, block, stream, [](void* closure) { (*static_cast<F*>(closure))(); },
        [](void* closure) { delete static_cast<F*>(closure); }, new F(std::move(function)));
}

template <class F>
cudaError_t on_stream(cudaStream_t stream, F function) {
    return launch(1, 1, stream, std::move(function));
}

struct Launcher {
    dim3 grid, block;
    cudaStream_t stream;

    // The arguments are taken by value when the kernel is launched, as CUDA does.
    template <class... P, class... A>
    void operator()(void (*kernel)(P...), A&&... arguments) const {
        std::tuple<std::decay_t<P>...> taken(std::forward<A>(arguments)...);
        launch(grid, block, stream, [kernel, taken] { std::apply(kernel, taken); });
    }
};

// HIP's form: the stream and the arguments come last.
template <class... P, class... A>
void launch_ggl(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, A&&... arguments) {
    Launcher{grid, block, stream}(kernel, std::forward<A>(arguments)...);
}

template <class... P, size_t... I>
cudaError_t launch_packed(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, cudaStream_t stream, std::index_sequence<I...>) {
    std::tuple<std::decay_t<P>...> taken(*static_cast<std::decay_t<P>*>(arguments[I])...);
    return launch(grid, block, stream, [kernel, taken] { std::apply(kernel, taken); });
}

}  // namespace kvstage

inline kvstage::Launcher kvstage_launch(dim3 grid, dim3 block, size_t = 0, cudaStream_t stream = nullptr) { return {grid, block, stream}; }

template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t = 0, cudaStream_t stream = nullptr) {
    return kvstage::launch_packed(kernel, grid, block, arguments, stream, std::index_sequence_for<P...>());
}
