// Copies and fills: what they do, and which of them the host waits for. The rules are those of "API synchronization behavior" in the
// reference of the CUDA runtime.
#pragma once
#include "graphs.hpp"

namespace {

// KVSTAGE_PAGEABLE: what an asynchronous copy of pageable host memory does before the call returns.
//   blocking     it has ended; so has one by cudaMemcpy
//   documented   its source was read, if that is pageable; it has ended, if its target is
//   async        nothing: the reference says "may"
enum class Pageable { blocking, documented, async };
Pageable pageable() {
    static const Pageable it = [] {
        const char* text = getenv("KVSTAGE_PAGEABLE");
        if (text && !strcmp(text, "blocking")) return Pageable::blocking;
        return text && !strcmp(text, "async") ? Pageable::async : Pageable::documented;
    }();
    return it;
}

// Rows of `width` bytes, `height` of them in each of `depth` planes.
struct Box {
    char* dst;
    const char* src;
    size_t width, height = 1, depth = 1;
    size_t dst_pitch = 0, src_pitch = 0, dst_plane = 0, src_plane = 0;

    size_t bytes() const { return width * height * depth; }
    static Range extent(const char* begin, size_t width, size_t height, size_t depth, size_t pitch, size_t plane) {
        return {begin, (depth - 1) * plane + (height - 1) * pitch + width};
    }
    Range target() const { return extent(dst, width, height, depth, dst_pitch, dst_plane); }
    Range source() const { return extent(src, width, height, depth, src_pitch, src_plane); }
};

// Rows `first` to `last` of as many halves; half of the bytes, of a single row.
template <class Move>
void in_halves(const Box& box, int first, int last, Move move) {
    const size_t rows = box.height * box.depth;
    if (rows == 1) {
        const size_t from = box.width * size_t(first) / 2, to = box.width * size_t(last) / 2;
        if (to > from) move(box.dst + from, box.src + from, to - from);
        return;
    }
    for (size_t row = rows * size_t(first) / 2; row < rows * size_t(last) / 2; ++row) {
        const size_t y = row % box.height, z = row / box.height;
        move(box.dst + z * box.dst_plane + y * box.dst_pitch, box.src + z * box.src_plane + y * box.src_pitch, box.width);
    }
}

class Copy : public Work {
   public:
    // `staged` holds the bytes of the source already, row after row, from `ready` on; or it is null.
    Copy(const Box& box, char* staged, Edge* ready) : box_(box), staged_(staged), ready_(ready) {}
    ~Copy() override {
        free(staged_);
        delete ready_;
    }
    void run(int first, int last) override {
        if (first == 0 && ready_) ready_->acquire();
        Box from = box_;
        if (staged_) from.src = staged_, from.src_pitch = box_.width, from.src_plane = box_.width * box_.height;
        in_halves(from, first, last, [](char* dst, const char* src, size_t bytes) { memmove(dst, src, bytes); });
    }
    bool touches(const Range& range) const override {
        return range.meets(box_.target()) || (!staged_ && range.meets(box_.source()));
    }
    const char* name() const override { return "copy"; }
    void write(FILE* log) const override {
        const Box& b = box_;
        fprintf(log, "\t%p\t%p\t%zu\t%zu\t%zu\t%zu\t%zu\t%zu\t%zu", static_cast<void*>(b.dst), static_cast<const void*>(b.src), b.width,
                b.height, b.depth, b.dst_pitch, b.src_pitch, b.dst_plane, b.src_plane);
    }

   private:
    const Box box_;
    char* const staged_;
    Edge* const ready_;
};

class Fill : public Work {
   public:
    Fill(const Box& box, int value) : box_(box), value_(value) {}
    void run(int first, int last) override {
        in_halves(box_, first, last, [this](char* dst, const char*, size_t bytes) { memset(dst, value_, bytes); });
    }
    bool touches(const Range& range) const override { return range.meets(box_.target()); }
    const char* name() const override { return "fill"; }
    void write(FILE* log) const override {
        const Box& b = box_;
        fprintf(log, "\t%p\t%zu\t%zu\t%zu", static_cast<void*>(b.dst), b.width, b.height, b.dst_pitch);
    }

   private:
    const Box box_;
    const int value_;
};

// The bytes of a source, read now and by the host.
char* staged_now(const Call& call, const Box& box) {
    auto* bytes = static_cast<char*>(malloc(box.bytes()));
    Box to = box;
    to.dst = bytes, to.dst_pitch = box.width, to.dst_plane = box.width * box.height;
    Calling from(call.caller);
    if (under_tsan()) __tsan_ignore_thread_end();
    in_halves(to, 0, 2, [](char* dst, const char* src, size_t n) { memcpy(dst, src, n); });
    if (under_tsan()) __tsan_ignore_thread_begin();
    return bytes;
}

bool is_host(cudaMemoryType type) { return type == cudaMemoryTypeUnregistered || type == cudaMemoryTypeHost; }

// What is wrong with the arguments of a copy, if anything is.
cudaError_t refused(const Box& box, cudaMemcpyKind kind) {
    if (!box.dst || !box.src) return cudaErrorInvalidValue;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    if (box.height > 1 && (box.dst_pitch < box.width || box.src_pitch < box.width)) return cudaErrorInvalidPitchValue;
    if (!memory().holds(box.target()) || !memory().holds(box.source())) return cudaErrorInvalidValue;
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (to_device && memory().type(box.dst) == cudaMemoryTypeUnregistered) return cudaErrorInvalidValue;
    if (from_device && memory().type(box.src) == cudaMemoryTypeUnregistered) return cudaErrorInvalidValue;
    return cudaSuccess;
}

// `blocking`: the form of the call without Async in its name.
cudaError_t copy(const Call& call, cudaStream_t handle, const Box& box, cudaMemcpyKind kind, bool blocking) {
    Stream* stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (!box.bytes()) return cudaSuccess;
    if (const cudaError_t error = refused(box, kind)) return failed(error);
    if (const cudaError_t error = capture_refuses(*stream)) return failed(error);
    Device& it = device();
    it.counts.copies++;
    it.counts.bytes += box.bytes();
    const cudaMemoryType from = memory().type(box.src), to = memory().type(box.dst);
    const bool from_pageable = from == cudaMemoryTypeUnregistered, to_pageable = to == cudaMemoryTypeUnregistered;
    char* staged = nullptr;
    bool waits = is_host(from) && is_host(to);
    if (blocking) waits = is_host(from) || is_host(to) || from == cudaMemoryTypeManaged || to == cudaMemoryTypeManaged;
    const bool reads_now = blocking ? pageable() != Pageable::blocking : pageable() == Pageable::documented;
    if (from_pageable && !is_host(to) && !stream->capture && reads_now) {
        if (blocking) call.wait({stream, stream->issued, nullptr});
        staged = staged_now(call, box);
        waits = false;
    } else if (to_pageable || from_pageable) {
        waits = waits || pageable() == Pageable::blocking || (to_pageable && pageable() == Pageable::documented);
    }
    Operation operation;
    operation.call = call.name;
    operation.work = new Copy(box, staged, nullptr);
    put(call, *stream, operation);
    if (blocking || waits) it.counts.waits++;
    if (waits && !stream->capture) {
        call.wait({stream, stream->issued, nullptr});
        it.log.line("sync_stream\t%s", stream->name);
    }
    return cudaSuccess;
}

cudaError_t fill(const Call& call, cudaStream_t handle, const Box& box, int value, bool blocking) {
    Stream* stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (!box.bytes()) return cudaSuccess;
    if (!box.dst || !memory().holds(box.target()) || memory().type(box.dst) == cudaMemoryTypeUnregistered)
        return failed(cudaErrorInvalidValue);
    if (box.height > 1 && box.dst_pitch < box.width) return failed(cudaErrorInvalidPitchValue);
    if (const cudaError_t error = capture_refuses(*stream)) return failed(error);
    Operation operation;
    operation.call = call.name;
    operation.work = new Fill(box, value);
    put(call, *stream, operation);
    if (blocking && memory().type(box.dst) != cudaMemoryTypeDevice) call.wait({stream, stream->issued, nullptr});  // else the host goes on
    return cudaSuccess;
}

// The bytes of a source, read at some time between the call and the end of the stream's work: in order with neither.
char* staged_any_time(const Call& call, const Box& box, Edge* ready) {
    static auto* elsewhere = new Fiber("a batch of source order Any");
    auto* bytes = static_cast<char*>(malloc(box.bytes()));
    Site site;
    if (under_tsan()) site.take(call.caller);
    static auto* issued = new Edge;
    issued->release();
    elsewhere->run(site, false, [&] {
        issued->acquire();
        memcpy(bytes, box.src, box.bytes());
        ready->release();
    });
    return bytes;
}

// Two copies of a batch have no order: what both write may be either's.
void find_common_targets(const Call& call, const std::vector<Box>& boxes) {
    std::vector<Range> targets;
    for (auto& box : boxes) targets.push_back(box.target());
    std::sort(targets.begin(), targets.end(), [](const Range& one, const Range& two) { return one.begin < two.begin; });
    for (size_t i = 1; i < targets.size(); ++i) {
        if (!targets[i].meets(targets[i - 1])) continue;
        Site here;
        here.take(call.caller);
        return device().log.finding("batch", "two copies of one batch write the same bytes, and have no order", here, here);
    }
}

struct Order {
    cudaMemcpySrcAccessOrder source;
};

// Copies of one batch, whose sources are read when `orders` say.
cudaError_t batch(const Call& call, Stream& stream, const std::vector<Box>& boxes, const std::vector<Order>& orders) {
    for (auto& box : boxes)
        if (const cudaError_t error = refused(box, cudaMemcpyDefault)) return failed(error);
    if (const cudaError_t error = capture_refuses(stream)) return failed(error);
    find_common_targets(call, boxes);
    Device& it = device();
    for (size_t i = 0; i < boxes.size(); ++i) {
        if (!boxes[i].bytes()) continue;
        it.counts.copies++;
        it.counts.bytes += boxes[i].bytes();
        Operation operation;
        operation.call = call.name;
        char* staged = nullptr;
        Edge* ready = nullptr;
        if (stream.capture) {
        } else if (orders[i].source == cudaMemcpySrcAccessOrderDuringApiCall) {
            staged = staged_now(call, boxes[i]);
        } else if (orders[i].source == cudaMemcpySrcAccessOrderAny && (under_tsan() || it.schedule.reads_early())) {
            staged = staged_any_time(call, boxes[i], ready = new Edge);
        }
        operation.work = new Copy(boxes[i], staged, ready);
        put(call, stream, operation);
    }
    return cudaSuccess;
}

}  // namespace
