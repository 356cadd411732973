// Stream capture and launches of graphs, under the schedule that holds everything back (late).
#include <cuda_runtime.h>

#include "checks.hpp"

namespace {

cudaStream_t stream() {
    cudaStream_t made;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
}
cudaEvent_t event() {
    cudaEvent_t made;
    cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
    return made;
}

void a_graph_is_launched_again_and_again() {
    cudaStream_t s = stream(), branch = stream();
    cudaEvent_t fork = event(), join = event();
    int *cells, *pinned;
    cudaMalloc(&cells, 4 * sizeof(int));
    cudaMallocHost(&pinned, sizeof(int));
    for (int i = 0; i < 4; ++i) cells[i] = 0;
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(cudaStreamIsCapturing(s, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive);
    cudaMemcpyAsync(cells, pinned, sizeof(int), cudaMemcpyHostToDevice, s);
    cudaEventRecord(fork, s);
    cudaStreamWaitEvent(branch, fork);
    CHECK(cudaStreamIsCapturing(branch, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive);
    kvstage::on_stream(branch, [cells] { cells[1] += cells[0]; });
    cudaEventRecord(join, branch);
    kvstage::on_stream(s, [cells] { cells[2] += cells[0]; });
    CHECK(cudaEventQuery(join) == cudaErrorCapturedEvent);
    cudaStreamWaitEvent(s, join);
    kvstage::on_stream(s, [cells] { cells[3] = cells[1] + cells[2]; });
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(s, &graph) == cudaSuccess && graph);
    CHECK(cudaStreamIsCapturing(branch, &status) == cudaSuccess && status == cudaStreamCaptureStatusNone);
    CHECK(kvstage_counts().operations == 0);  // captured, not done

    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
    for (int i = 1; i <= 3; ++i) {
        *pinned = i;  // the address is in the graph, not what was there
        CHECK(cudaGraphLaunch(executable, s) == cudaSuccess && cells[0] == i - 1);
        cudaStreamSynchronize(s);
        CHECK(cells[0] == i && cells[3] == i * (i + 1));
    }
    CHECK(kvstage_counts().operations == 3 * 4);
    CHECK(cudaGraphExecDestroy(executable) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
}

void what_a_capture_refuses() {
    cudaStream_t s = stream(), other = stream(), blocking;
    cudaStreamCreate(&blocking);
    cudaEvent_t fork = event(), outside = event();
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorIllegalState);
    CHECK(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);

    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);  // a branch that never joins
    cudaEventRecord(fork, s);
    cudaStreamWaitEvent(other, fork);
    kvstage::on_stream(other, [] {});
    CHECK(cudaStreamEndCapture(other, &graph) == cudaErrorStreamCaptureUnmatched);
    CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureUnjoined && !graph);

    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);  // a wait in the middle
    CHECK(cudaStreamSynchronize(s) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);

    cudaEventRecord(outside, other);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);  // an event of no capture
    CHECK(cudaStreamWaitEvent(s, outside) == cudaErrorStreamCaptureIsolation);
    CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);

    char* device;
    cudaMalloc(&device, 1);
    cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal);  // the default stream would have to wait for it
    CHECK(cudaMemset(device, 0, 1) == cudaErrorStreamCaptureImplicit);
    CHECK(cudaStreamEndCapture(blocking, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaMemset(device, 0, 1) == cudaSuccess);
}

}  // namespace

int main() {
    a_graph_is_launched_again_and_again();
    what_a_capture_refuses();
    return checks_failed();
}
