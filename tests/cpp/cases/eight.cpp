// Eight kinds of mistake, one of each.
#include <memory>

#include "cases.hpp"

CASE(hoisted) {  // the wait has moved out of the loop
    Pool pool;
    Pinned stage(1);
    std::vector<char> out(kBytes);
    cudaStream_t s = new_stream();
    for (int r = 0; r < kRows; ++r) {
        cudaMemcpyAsync(stage.rows, pool.row(r), kRow, cudaMemcpyDeviceToHost, s);
        if (right) cudaStreamSynchronize(s);
        memcpy(&out[size_t(r) * kRow], stage.rows, kRow);
    }
    cudaStreamSynchronize(s);
    return wrong(out.data());
}

CASE(double_buffer) {  // the event is recorded before the copy that it is meant for
    Pool pool(false);
    Pinned pinned(2);
    cudaStream_t s = new_stream();
    cudaEvent_t sent[2] = {new_event(), new_event()};
    for (int r = 0; r < kRows; ++r) {
        cudaEventSynchronize(sent[r % 2]);
        fill_row(pinned.row(r % 2), r);
        if (!right) cudaEventRecord(sent[r % 2], s);
        cudaMemcpyAsync(pool.row(r), pinned.row(r % 2), kRow, cudaMemcpyHostToDevice, s);
        if (right) cudaEventRecord(sent[r % 2], s);
    }
    return pool.wrong();
}

CASE(handover) {  // one stream packs, another one copies out: the next row is packed while the last one may still be read
    Pool pool, packed(false);
    Pinned out;
    cudaStream_t compute = new_stream(), copy = new_stream();
    cudaEvent_t ready = new_event(), freed = new_event();
    for (int r = 0; r < kRows; ++r) {
        if (right) cudaStreamWaitEvent(compute, freed);
        cudaMemcpyAsync(packed.rows, pool.row(r), kRow, cudaMemcpyDeviceToDevice, compute);
        cudaEventRecord(ready, compute);
        cudaStreamWaitEvent(copy, ready);
        cudaMemcpyAsync(out.row(r), packed.rows, kRow, cudaMemcpyDeviceToHost, copy);
        cudaEventRecord(freed, copy);
    }
    cudaStreamSynchronize(copy);
    return wrong(out.rows);
}

CASE(free_early) {  // the pinned source is freed while its copy may be under way
    Pool pool(false);
    char* pinned;
    cudaMallocHost(&pinned, kBytes);
    for (int r = 0; r < kRows; ++r) fill_row(pinned + r * kRow, r);
    cudaStream_t s = new_stream();
    cudaMemcpyAsync(pool.rows, pinned, kBytes, cudaMemcpyHostToDevice, s);
    if (right) cudaStreamSynchronize(s);
    cudaFreeHost(pinned);
    return pool.wrong();
}

namespace {
struct Ring {
    Pinned slots{2};
    cudaStream_t stream = new_stream();
    cudaEvent_t sent[2] = {new_event(), new_event()};
};
void load(Ring& ring, Pool& pool, int first, int count, bool right) {
    cudaEvent_t of_this_call[2] = {new_event(), new_event()};
    cudaEvent_t* sent = right ? ring.sent : of_this_call;
    for (int r = first; r < first + count; ++r) {
        cudaEventSynchronize(sent[r % 2]);
        fill_row(ring.slots.row(r % 2), r);
        cudaMemcpyAsync(pool.row(r), ring.slots.row(r % 2), kRow, cudaMemcpyHostToDevice, ring.stream);
        cudaEventRecord(sent[r % 2], ring.stream);
    }
    for (auto& event : of_this_call) cudaEventDestroy(event);
}
}  // namespace
CASE(ring_two_calls) {  // H07: the events live for a call, the ring for all: the second call forgets what the first left under way
    Pool pool(false);
    Ring ring;
    load(ring, pool, 0, 4, right);
    load(ring, pool, 4, 4, right);
    return pool.wrong();
}

namespace {
struct Job {
    char* stage;
    char* out;
};
}  // namespace
CASE(host_function) {  // a host function takes the row, from a place that the host changes meanwhile
    Pool pool;
    Pinned stage(1);
    std::vector<char> out(kBytes);
    auto job = std::make_unique<Job>();
    cudaStream_t s = new_stream();
    for (int r = 0; r < kRows; ++r) {
        *job = {stage.rows, &out[size_t(r) * kRow]};
        cudaMemcpyAsync(stage.rows, pool.row(r), kRow, cudaMemcpyDeviceToHost, s);
        cudaLaunchHostFunc(s, [](void* data) { memcpy(static_cast<Job*>(data)->out, static_cast<Job*>(data)->stage, kRow); }, job.get());
        if (right) cudaStreamSynchronize(s);
    }
    cudaStreamSynchronize(s);
    return wrong(out.data());
}

CASE(query_poll) {  // the event is asked, and the answer is not looked at
    Pool pool;
    Pinned stage(1);
    std::vector<char> out(kBytes);
    cudaStream_t s = new_stream();
    cudaEvent_t done = new_event();
    for (int r = 0; r < kRows; ++r) {
        cudaMemcpyAsync(stage.rows, pool.row(r), kRow, cudaMemcpyDeviceToHost, s);
        cudaEventRecord(done, s);
        while (cudaEventQuery(done) == cudaErrorNotReady && right) {
        }
        memcpy(&out[size_t(r) * kRow], stage.rows, kRow);
    }
    cudaStreamSynchronize(s);
    return wrong(out.data());
}

CASE(batch_any_order) {  // a batched copy that may read its sources at any time, after the copy that writes them
    Pool pool, source(false);
    Pinned out;
    cudaStream_t s = new_stream();
    cudaMemcpyAsync(source.rows, pool.rows, kBytes, cudaMemcpyDeviceToDevice, s);
    if (right) cudaStreamSynchronize(s);
    void *targets[kRows], *sources[kRows];
    size_t sizes[kRows], starts = 0, failed;
    for (int r = 0; r < kRows; ++r) targets[r] = out.row(r), sources[r] = source.row(r), sizes[r] = kRow;
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderAny;
    cudaMemcpyBatchAsync(targets, sources, sizes, kRows, &attributes, &starts, 1, &failed, s);
    cudaStreamSynchronize(s);
    return wrong(out.rows);
}
