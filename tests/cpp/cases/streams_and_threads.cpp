// Public mistakes between streams, and between threads. The numbers are those of the catalogue of hazards.
#include <atomic>
#include <thread>

#include "cases.hpp"

namespace {
void compute(cudaStream_t stream, const Pool& from, Pool& to, int row) {
    kvstage::on_stream(stream, [&from, &to, row] { copy_row(to.row(row), from.row(row)); });
}
}  // namespace

CASE(h38_waits_for_somebody_elses_work) {  // two threads and one list of work under way: one drains it, the other waits for nothing
    Pool pool;
    Pinned stage(1), out(1);
    cudaStream_t s = new_stream();
    std::atomic<bool> drained{false};
    cudaEvent_t under_way = new_event();
    std::thread other([&] {
        cudaEventSynchronize(under_way);
        drained = true;
    });
    while (!drained) std::this_thread::yield();
    cudaMemcpyAsync(stage.rows, pool.row(0), kRow, cudaMemcpyDeviceToHost, s);
    if (right) cudaEventRecord(under_way, s);
    cudaEventSynchronize(under_way);
    copy_row(out.rows, stage.rows);
    other.join();
    return wrong(out.rows, 1);
}

CASE(h39_saves_state_while_work_is_pending) {  // the state of a session is saved while a step still writes it
    Pool pool, cache(false);
    Pinned saved;
    cudaStream_t model = new_stream(), save = new_stream();
    for (int r = 0; r < kRows; ++r) compute(model, pool, cache, r);
    if (right) cudaStreamSynchronize(model);
    cudaMemcpyAsync(saved.rows, cache.rows, kBytes, cudaMemcpyDeviceToHost, save);
    cudaStreamSynchronize(save);
    return wrong(saved.rows);
}

CASE(h40_store_does_not_wait_for_compute) {  // blocks are offloaded while the kernel that writes them may still run
    Pool pool, blocks(false);
    Pinned host;
    cudaStream_t model = new_stream(), store = new_stream();
    cudaEvent_t written = new_event();
    for (int r = 0; r < kRows; ++r) {
        compute(model, pool, blocks, r);
        cudaEventRecord(written, model);
        if (right) cudaStreamWaitEvent(store, written);
        cudaMemcpyAsync(host.row(r), blocks.row(r), kRow, cudaMemcpyDeviceToHost, store);
    }
    cudaStreamSynchronize(store);
    return wrong(host.rows);
}

CASE(h43_transfer_thread_without_the_event) {  // another thread sends a chunk as soon as it hears of it: a network card waits for no stream
    Pool pool, chunk(false);
    std::vector<char> remote(kBytes);
    cudaStream_t model = new_stream();
    for (int r = 0; r < kRows; ++r) compute(model, pool, chunk, r);
    cudaEvent_t written = new_event();
    cudaEventRecord(written, model);
    std::thread sender([&] {
        if (right) cudaEventSynchronize(written);
        memcpy(remote.data(), chunk.rows, kBytes);
    });
    sender.join();
    return wrong(remote.data());
}

CASE(h47_zeroed_behind_the_load) {  // a fresh block is zeroed on one stream and loaded on another: the zeros may come last
    Pool blocks;
    Pinned source;
    for (int r = 0; r < kRows; ++r) fill_row(source.row(r), r);
    cudaStream_t model = new_stream(), load = new_stream();
    cudaEvent_t zeroed = new_event();
    cudaMemsetAsync(blocks.rows, 0, kBytes, model);
    cudaEventRecord(zeroed, model);
    if (right) cudaStreamWaitEvent(load, zeroed);
    cudaMemcpyAsync(blocks.rows, source.rows, kBytes, cudaMemcpyHostToDevice, load);
    return blocks.wrong();
}

CASE(h50_one_reader_forgets_the_wait) {  // layers come one by one, each with its event; of the readers, the indexer's does not wait
    Pool cache(false), index(false), seen(false), indexed(false);
    Pinned host;
    for (int r = 0; r < kRows; ++r) fill_row(host.row(r), r);
    cudaStream_t load = new_stream(), model = new_stream();
    cudaEvent_t cache_there = new_event(), index_there = new_event();
    for (int layer = 0; layer < kRows; ++layer) {
        cudaMemcpyAsync(cache.row(layer), host.row(layer), kRow, cudaMemcpyHostToDevice, load);
        cudaEventRecord(cache_there, load);
        cudaMemcpyAsync(index.row(layer), host.row(layer), kRow, cudaMemcpyHostToDevice, load);
        cudaEventRecord(index_there, load);
        cudaStreamWaitEvent(model, cache_there);
        compute(model, cache, seen, layer);
        if (right) cudaStreamWaitEvent(model, index_there);
        compute(model, index, indexed, layer);
    }
    return seen.wrong() + indexed.wrong();
}

CASE(h54_two_blocks_into_one_slot) {  // two streams offload into the same host slot; what is pending was kept by block, not by slot
    Pool pool;
    Pinned slot(1);
    cudaStream_t first = new_stream(), second = new_stream();
    cudaEvent_t done = new_event();
    cudaMemcpyAsync(slot.rows, pool.row(3), kRow, cudaMemcpyDeviceToHost, first);
    cudaEventRecord(done, first);
    if (right) cudaStreamWaitEvent(second, done);
    cudaMemcpyAsync(slot.rows, pool.row(0), kRow, cudaMemcpyDeviceToHost, second);
    cudaDeviceSynchronize();
    return wrong(slot.rows, 1);
}

CASE(h59_inline_path_without_the_wait) {  // staging is reloaded with no order after the copy that fills it
    Pool pool, reloaded(false);
    Pinned staging;
    cudaStream_t offload = new_stream(), reload = new_stream();
    cudaEvent_t filled = new_event();
    cudaMemcpyAsync(staging.rows, pool.rows, kBytes, cudaMemcpyDeviceToHost, offload);
    cudaEventRecord(filled, offload);
    if (right) cudaStreamWaitEvent(reload, filled);
    cudaMemcpyAsync(reloaded.rows, staging.rows, kBytes, cudaMemcpyHostToDevice, reload);
    return reloaded.wrong();
}

CASE(h61_schedule_stream_writes_what_forward_reads) {  // the next step's index tables are written while this step reads them
    Pool pool, table(false), out(false);
    Pinned host;
    for (int r = 0; r < kRows; ++r) host.rows[r] = char(r);
    cudaStream_t schedule = new_stream(), forward = new_stream();
    cudaEvent_t written = new_event(), read = new_event();
    for (int r = 0; r < kRows; ++r) {
        if (right) cudaStreamWaitEvent(schedule, read);
        cudaMemcpyAsync(table.rows, host.rows + r, 1, cudaMemcpyHostToDevice, schedule);
        cudaEventRecord(written, schedule);
        cudaStreamWaitEvent(forward, written);
        kvstage::on_stream(forward, [&, r] { copy_row(out.row(r), pool.row(table.rows[0])); });
        cudaEventRecord(read, forward);
    }
    return out.wrong();
}

CASE(h63_freed_on_another_stream) {  // memory of the stream's allocator goes back on one stream while another one copies it out
    Pool pool;
    Pinned out;
    cudaStream_t model = new_stream(), side = new_stream();
    cudaEvent_t made = new_event(), taken = new_event();
    char* block;
    cudaMallocAsync(&block, kBytes, model);
    cudaMemcpyAsync(block, pool.rows, kBytes, cudaMemcpyDeviceToDevice, model);
    cudaEventRecord(made, model);
    cudaStreamWaitEvent(side, made);
    cudaMemcpyAsync(out.rows, block, kBytes, cudaMemcpyDeviceToHost, side);
    cudaEventRecord(taken, side);
    if (right) cudaStreamWaitEvent(model, taken);
    cudaFreeAsync(block, model);
    cudaDeviceSynchronize();
    return wrong(out.rows);
}

CASE(h67_a_stream_waits_for_itself) {  // "the current stream", asked for in the wrong place: a stream waits for its own event, for nothing
    Pool pool, cache(false);
    Pinned stage;
    for (int r = 0; r < kRows; ++r) fill_row(stage.row(r), r);
    cudaStream_t model = new_stream(), transfer = new_stream();
    cudaEvent_t done = new_event();
    kvstage::on_stream(model, [&] { memset(cache.rows, 0, kBytes); });
    cudaEventRecord(done, right ? model : transfer);
    cudaStreamWaitEvent(transfer, done);
    cudaMemcpyAsync(cache.rows, stage.rows, kBytes, cudaMemcpyHostToDevice, transfer);
    return cache.wrong();
}

CASE(h70_one_pool_of_scratch_for_two_streams) {  // scratch memory is handed out like a stack, and two streams take the same
    Pool pool, scratch(false), one(false), two(false);
    cudaStream_t first = new_stream(), second = new_stream();
    for (int r = 0; r < kRows; ++r) {
        char* of_first = scratch.row(0);
        char* of_second = scratch.row(right ? 1 : 0);
        kvstage::on_stream(first, [&, of_first, r] { copy_row(of_first, pool.row(r)); });
        kvstage::on_stream(second, [&, of_second, r] { copy_row(of_second, pool.row(kRows - 1 - r)); });
        kvstage::on_stream(first, [&, of_first, r] { copy_row(one.row(r), of_first); });
        kvstage::on_stream(second, [&, of_second, r] { copy_row(two.row(kRows - 1 - r), of_second); });
    }
    return one.wrong() + two.wrong();
}

CASE(h80_waits_for_the_default_stream) {  // the gradients come from a stream that the default stream is not in order with
    Pool pool, gradients(false), reduced(false);
    cudaStream_t producer = new_stream(), reduction = new_stream();
    cudaEvent_t ready = new_event();
    for (int r = 0; r < kRows; ++r) compute(producer, pool, gradients, r);
    cudaEventRecord(ready, right ? producer : cudaStreamLegacy);
    cudaStreamWaitEvent(reduction, ready);
    for (int r = 0; r < kRows; ++r) compute(reduction, gradients, reduced, r);
    return reduced.wrong();
}
