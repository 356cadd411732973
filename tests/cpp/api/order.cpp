// What is in order with what, asked of the program under the schedule that holds everything back (late): nothing has happened but what
// a wait, or an order, has made happen.
#include <cuda_runtime.h>

#include <atomic>
#include <thread>

#include "checks.hpp"

namespace {

struct Cells {  // on the device, where the host looks without asking
    int* cells;
    Cells() {
        cudaMalloc(&cells, 8 * sizeof(int));
        for (int i = 0; i < 8; ++i) cells[i] = 0;
    }
    void set(int i, int value, cudaStream_t stream) {
        kvstage::on_stream(stream, [cell = cells + i, value] { *cell = value; });
    }
    int operator[](int i) const { return cells[i]; }
};
cudaStream_t blocking() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    return stream;
}
cudaStream_t non_blocking() {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return stream;
}

void legacy_stream_is_in_order_with_blocking_ones() {
    Cells c;
    cudaStream_t first = blocking(), second = blocking(), apart = non_blocking();
    c.set(0, 1, first);
    c.set(1, 1, apart);
    c.set(2, 1, nullptr);
    c.set(3, 1, second);
    CHECK(!c[0] && !c[1] && !c[2] && !c[3]);
    cudaStreamSynchronize(second);  // after the default stream's, which is after the first's
    CHECK(c[0] && !c[1] && c[2] && c[3]);
    c.set(4, 1, first);
    cudaStreamSynchronize(cudaStreamLegacy);  // which has nothing of its own to do
    CHECK(!c[1] && c[4]);
    cudaStreamSynchronize(apart);
    CHECK(c[1] == 1);
}

void per_thread_streams_are_blocking_and_apart_from_each_other() {
    Cells c;
    c.set(0, 1, cudaStreamPerThread);
    std::thread([&] {
        c.set(1, 1, cudaStreamPerThread);
        cudaStreamSynchronize(cudaStreamPerThread);
        CHECK(!c[0] && c[1]);
    }).join();
    c.set(2, 1, cudaStreamLegacy);
    cudaStreamSynchronize(cudaStreamLegacy);
    CHECK(c[0] && c[2]);
}

void an_event_is_its_last_record_when_it_is_waited_for() {
    Cells c;
    cudaStream_t s = non_blocking(), other = non_blocking();
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    c.set(0, 1, s);
    cudaEventRecord(event, s);
    cudaStreamWaitEvent(other, event);
    c.set(1, 1, s);
    cudaEventRecord(event, s);
    c.set(2, 1, s);
    c.set(3, 1, other);
    cudaStreamSynchronize(other);
    CHECK(c[0] && !c[1] && !c[2] && c[3]);
    cudaEventSynchronize(event);
    CHECK(c[1] && !c[2]);
    cudaDeviceSynchronize();
    CHECK(c[2] == 1);
}

void a_query_answers_not_ready_for_a_while() {
    Cells c;
    cudaStream_t s = non_blocking();
    c.set(0, 1, s);
    CHECK(cudaStreamQuery(s) == cudaErrorNotReady && !c[0]);
    CHECK(cudaGetLastError() == cudaSuccess);  // it is no error
    int asked = 1;
    while (cudaStreamQuery(s) == cudaErrorNotReady) ++asked;
    CHECK(c[0] == 1 && asked == 64);
}

void copies_that_the_host_waits_for() {
    char *device, *other, *pinned, pageable[8] = {};
    cudaMalloc(&device, 8);
    cudaMalloc(&other, 8);
    cudaMallocHost(&pinned, 8);
    cudaMemset(device, 1, 8);
    CHECK(device[0] != 1);  // device memory: the host goes on
    cudaDeviceSynchronize();
    CHECK(device[0] == 1);
    cudaMemset(pinned, 2, 8);
    CHECK(pinned[0] == 2);  // memory of the host: it waits
    cudaMemcpy(device, pinned, 8, cudaMemcpyHostToDevice);
    CHECK(device[0] == 2);
    cudaMemcpy(other, device, 8, cudaMemcpyDeviceToDevice);
    CHECK(other[0] != 2);
    cudaMemcpy(pageable, other, 8, cudaMemcpyDeviceToHost);
    CHECK(pageable[0] == 2);
    pageable[0] = 3;
    cudaMemcpy(device, pageable, 8, cudaMemcpyHostToDevice);
    CHECK(device[0] == 2);  // the source was read, and that is all
    pageable[0] = 4;
    cudaDeviceSynchronize();
    CHECK(device[0] == 3);
    cudaStream_t s = non_blocking();
    cudaMemcpyAsync(pageable, device, 8, cudaMemcpyDeviceToHost, s);
    CHECK(pageable[0] == 3);
    cudaMemcpyAsync(pinned, device, 8, cudaMemcpyDeviceToHost, s);
    CHECK(pinned[0] == 2);
    cudaDeviceSynchronize();
}

void a_batch_reads_when_its_attributes_say() {
    char *device, *pinned;
    cudaMalloc(&device, 16);
    cudaMallocHost(&pinned, 16);
    pinned[0] = pinned[8] = 1;
    cudaStream_t s = non_blocking();
    void *targets[] = {device, device + 8}, *sources[] = {pinned, pinned + 8};
    size_t sizes[] = {8, 8}, starts[] = {0, 1}, failed = 0;
    cudaMemcpyAttributes attributes[2]{};
    attributes[0].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
    attributes[1].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    CHECK(cudaMemcpyBatchAsync(targets, sources, sizes, 2, attributes, starts, 2, &failed, nullptr) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyBatchAsync(targets, sources, sizes, 2, attributes, starts, 2, &failed, s) == cudaSuccess);
    CHECK(failed == SIZE_MAX && device[0] != 1);
    pinned[0] = pinned[8] = 2;
    cudaStreamSynchronize(s);
    CHECK(device[0] == 1 && device[8] == 2);
}

void a_host_function_may_wait_for_the_host() {
    Cells c;
    cudaStream_t s = non_blocking();
    std::atomic<int> gate{0};
    cudaLaunchHostFunc(s, [](void* data) { while (!*static_cast<std::atomic<int>*>(data)) std::this_thread::yield(); }, &gate);
    c.set(0, 1, s);
    CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
    gate = 1;
    cudaStreamSynchronize(s);
    CHECK(c[0] == 1);
}

void the_host_may_wait_for_a_host_function() {
    cudaStream_t s = non_blocking();
    std::atomic<int> told{0};
    cudaLaunchHostFunc(s, [](void* data) { *static_cast<std::atomic<int>*>(data) = 1; }, &told);
    CHECK(!told);
    while (!told) std::this_thread::yield();  // no call of the API: the device comes to it all the same
}

void work_of_a_destroyed_stream_is_done() {
    Cells c;
    cudaStream_t s = non_blocking();
    c.set(0, 1, s);
    cudaStreamDestroy(s);
    CHECK(!c[0]);
    cudaDeviceSynchronize();
    CHECK(c[0] == 1);
}

}  // namespace

int main() {
    legacy_stream_is_in_order_with_blocking_ones();
    per_thread_streams_are_blocking_and_apart_from_each_other();
    an_event_is_its_last_record_when_it_is_waited_for();
    a_query_answers_not_ready_for_a_while();
    copies_that_the_host_waits_for();
    a_batch_reads_when_its_attributes_say();
    a_host_function_may_wait_for_the_host();
    the_host_may_wait_for_a_host_function();
    work_of_a_destroyed_stream_is_done();
    return checks_failed();
}
