// Public mistakes with host memory that a copy, or a kernel, still uses. The numbers are those of the catalogue of hazards.
#include <memory>

#include "cases.hpp"

namespace {
// Work that a step of a model has the stream do before anything else: some rows, somewhere.
void busy(cudaStream_t stream) {
    static auto* scratch = new Pool;
    cudaMemcpyAsync(scratch->row(0), scratch->row(1), kRow, cudaMemcpyDeviceToDevice, stream);
}
}  // namespace

CASE(h01_one_page_table) {  // one pinned table for all steps; each step's kernel reads the table's copy on the device
    Pool pool, out(false), table(false);
    Pinned pinned(1);
    cudaStream_t s = new_stream();
    std::vector<std::unique_ptr<Pinned>> fresh;
    for (int r = 0; r < kRows; ++r) {
        if (right) fresh.push_back(std::make_unique<Pinned>(1));
        char* host = right ? fresh.back()->rows : pinned.rows;
        host[0] = char(r);
        busy(s);
        cudaMemcpyAsync(table.rows, host, 1, cudaMemcpyHostToDevice, s);
        kvstage::on_stream(s, [&, r] { copy_row(out.row(r), pool.row(table.rows[0])); });
    }
    return out.wrong();
}

CASE(h02_kernel_reads_host_table) {  // the kernel reads the host's table itself, when it runs
    Pool pool, out(false);
    Pinned table(1);
    cudaStream_t s = new_stream();
    for (int r = 0; r < kRows; ++r) {
        table.rows[0] = char(r);
        kvstage::on_stream(s, [&, r] { copy_row(out.row(r), pool.row(table.rows[0])); });
        if (right) cudaStreamSynchronize(s);
    }
    return out.wrong();
}

CASE(h04_fence_around_less_than_is_written) {  // the wait guards one of two buffers that each step writes
    Pool inputs(false), sampling(false);
    Pinned input(1), parameters(1);
    cudaStream_t s = new_stream();
    cudaEvent_t taken = new_event();
    for (int r = 0; r < kRows; ++r) {
        if (right) cudaEventSynchronize(taken);
        fill_row(parameters.rows, r);
        cudaMemcpyAsync(sampling.row(r), parameters.rows, kRow, cudaMemcpyHostToDevice, s);
        cudaEventSynchronize(taken);
        fill_row(input.rows, r);
        cudaMemcpyAsync(inputs.row(r), input.rows, kRow, cudaMemcpyHostToDevice, s);
        cudaEventRecord(taken, s);
    }
    return inputs.wrong() + sampling.wrong();
}

CASE(h06_zeroing_the_wrong_blocks) {  // a kernel zeroes the blocks of a list that the host has replaced
    Pool pool, list(false);
    Pinned ids(2);
    cudaStream_t s = new_stream();
    for (int turn = 0; turn < 2; ++turn) {
        char* host = ids.row(right ? turn : 0);
        host[0] = char(turn ? 5 : 2);
        busy(s);
        cudaMemcpyAsync(list.rows, host, 1, cudaMemcpyHostToDevice, s);
        kvstage::on_stream(s, [&] { memset(pool.row(list.rows[0]), 0, kRow); });
    }
    std::vector<char> host(kBytes);
    cudaDeviceSynchronize();
    cudaMemcpy(host.data(), pool.rows, kBytes, cudaMemcpyDeviceToHost);
    int found = 0;
    for (int i = 0; i < int(kBytes); ++i) {
        const int r = i / kRow;
        found += host[size_t(i)] != (r == 2 || r == 5 ? 0 : value_of(r));
    }
    return found;
}

CASE(h13_copied_behind_the_record) {  // the step's event is recorded, then one more copy of the step's metadata is issued
    Pool meta(false);
    Pinned pinned(1);
    cudaStream_t s = new_stream();
    cudaEvent_t step = new_event();
    for (int r = 0; r < kRows; ++r) {
        cudaEventSynchronize(step);
        fill_row(pinned.rows, r);
        busy(s);
        if (!right) cudaEventRecord(step, s);
        cudaMemcpyAsync(meta.row(r), pinned.rows, kRow, cudaMemcpyHostToDevice, s);
        if (right) cudaEventRecord(step, s);
    }
    return meta.wrong();
}

CASE(h15_keys_then_values) {  // one staging row for the keys and, at once, for the values
    Pool keys(false), values(false);
    Pinned stage(2);
    cudaStream_t s = new_stream();
    for (int r = 0; r < kRows; ++r) {
        fill_row(stage.row(0), r);
        cudaMemcpyAsync(keys.row(r), stage.row(0), kRow, cudaMemcpyHostToDevice, s);
        char* second = stage.row(right ? 1 : 0);
        for (int i = 0; i < kRow; ++i) second[i] = char(r + 101);
        cudaMemcpyAsync(values.row(r), second, kRow, cudaMemcpyHostToDevice, s);
        cudaStreamSynchronize(s);
    }
    return keys.wrong();
}

CASE(h20_local_source_that_was_pinned) {  // a local vector is the source: harmless until it is registered
    Pool pool(false);
    cudaStream_t s = new_stream();
    {
        std::vector<char> local(kBytes);
        for (int r = 0; r < kRows; ++r) fill_row(&local[size_t(r) * kRow], r);
        cudaHostRegister(local.data(), kBytes, cudaHostRegisterDefault);
        cudaMemcpyAsync(pool.rows, local.data(), kBytes, cudaMemcpyHostToDevice, s);
        if (right) cudaStreamSynchronize(s);
        cudaHostUnregister(local.data());
    }
    return pool.wrong();
}

CASE(h22_graph_keeps_the_address) {  // a graph's copy reads its host source anew with each launch: the source must live as long
    Pool pool(false);
    cudaStream_t s = new_stream();
    auto source = std::make_unique<Pinned>();
    for (int r = 0; r < kRows; ++r) fill_row(source->row(r), r);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    cudaMemcpyAsync(pool.rows, source->rows, kBytes, cudaMemcpyHostToDevice, s);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, s);
    cudaStreamSynchronize(s);
    cudaMemset(pool.rows, 0, kBytes);
    cudaDeviceSynchronize();
    if (!right)  // the next owner of the buffer
        for (int r = 0; r < kRows; ++r) fill_row(source->row(r), 77);
    cudaGraphLaunch(executable, s);
    if (!right) fill_row(source->row(0), 78);
    const int found = pool.wrong();
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    return found;
}

CASE(h24_one_branch_without_a_wait) {  // inputs are kept in turns, each after an event: but for those that come from the host
    Pool inputs(false);
    Pinned turns(2);
    cudaStream_t s = new_stream();
    cudaEvent_t used[2] = {new_event(), new_event()};
    for (int r = 0; r < kRows; ++r) {
        const bool from_host = r % 4 == 3;
        if (right || !from_host) cudaEventSynchronize(used[r % 2]);
        fill_row(turns.row(r % 2), r);
        cudaMemcpyAsync(inputs.row(r), turns.row(r % 2), kRow, cudaMemcpyHostToDevice, s);
        cudaEventRecord(used[r % 2], s);
    }
    return inputs.wrong();
}

CASE(h28_descriptors_of_a_batch) {  // the list of a batch's pointers is given back while the batch's kernel may still read it
    Pool pool, out(false);
    struct Descriptor {
        char* to;
        const char* from;
    };
    Descriptor* list;
    cudaMallocHost(&list, sizeof *list);
    cudaStream_t s = new_stream();
    for (int r = 0; r < kRows; ++r) {
        *list = {out.row(r), pool.row(r)};
        kvstage::on_stream(s, [list] { copy_row(list->to, list->from); });
        if (right) cudaStreamSynchronize(s);
    }
    const int found = out.wrong();
    cudaFreeHost(list);
    return found;
}

CASE(h30_pageable_copy_and_a_stream_of_its_own) {  // cudaMemcpy returns when its pageable source was read; a non-blocking stream does not wait
    Pool pool(false), out(false);
    std::vector<char> host(kBytes);
    for (int r = 0; r < kRows; ++r) fill_row(&host[size_t(r) * kRow], r);
    cudaStream_t s = new_stream();
    cudaMemcpy(pool.rows, host.data(), kBytes, cudaMemcpyHostToDevice);
    if (right) cudaStreamSynchronize(cudaStreamLegacy);
    cudaMemcpyAsync(out.rows, pool.rows, kBytes, cudaMemcpyDeviceToDevice, s);
    return out.wrong();
}

CASE(h31_count_of_the_last_step) {  // the host reads a count that the last step's copy brings, an event too early
    Pool pool;
    Pinned count(1), out;
    cudaStream_t s = new_stream();
    cudaEvent_t there = new_event();
    for (int r = 0; r < kRows; ++r) {
        cudaMemcpyAsync(count.rows, pool.row(r), kRow, cudaMemcpyDeviceToHost, s);
        cudaEventRecord(there, s);
        if (right) cudaEventSynchronize(there);
        copy_row(out.row(r), count.rows);
    }
    return wrong(out.rows);
}

CASE(h33_target_that_the_host_rearranges) {  // a copy writes into the live table of a batch, whose rows the host moves meanwhile
    Pool pool;
    Pinned live, mine;
    cudaStream_t s = new_stream();
    cudaMemcpyAsync(right ? mine.rows : live.rows, pool.rows, kBytes, cudaMemcpyDeviceToHost, s);
    for (int r = 0; r + 1 < kRows; ++r) copy_row(live.row(r), live.row(r + 1));
    cudaStreamSynchronize(s);
    return wrong(right ? mine.rows : live.rows);
}
