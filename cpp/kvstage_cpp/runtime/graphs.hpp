// Stream capture, and graphs that are launched again and again.
//
// A graph is the list of what was captured, in its order: work, records and waits, each of a branch, which is a captured stream. A launch
// puts the list into streams once more: the first branch's part into the stream that it is launched on, others into streams of its own.
#pragma once
#include <algorithm>

#include "memory.hpp"

namespace {

struct Command {
    size_t branch;
    Work* work;                 // which a graph keeps for ever
    long record = -1, wait = -1;  // numbers of records
    const char* call;
    Site site;
};

struct Number {
    size_t commands = 0;
};
struct Known {  // how many commands of each branch come before something
    std::vector<Number> of;
};

struct Capture {
    std::vector<Stream*> branches;
    std::vector<Command> commands;
    long records = 0;
    bool invalid = false;

    size_t branch(const Stream& stream) const { return size_t(std::find(branches.begin(), branches.end(), &stream) - branches.begin()); }

    void add(const Call& call, Stream& stream, Operation& operation) {
        Command command{branch(stream), operation.work, -1, -1, call.name, {}};
        command.site.take(call.caller);
        for (auto& point : operation.after) {
            command.wait = long(point.mark->position);
            drop(point.mark);
        }
        if (operation.mark) {
            operation.mark->capture = this;
            operation.mark->position = uint64_t(command.record = records++);
            drop(operation.mark);
        }
        commands.push_back(command);
    }

    // Whether the first branch has waited, directly or through others, for all that the others have got.
    bool joined() const {
        const Known nothing{std::vector<Number>(branches.size())};
        std::vector<Known> now(branches.size(), nothing), recorded(size_t(records), nothing);
        for (auto& command : commands) {
            Known& mine = now[command.branch];
            ++mine.of[command.branch].commands;
            if (command.record >= 0) recorded[size_t(command.record)] = mine;
            if (command.wait < 0) continue;
            const Known& other = recorded[size_t(command.wait)];
            for (size_t i = 0; i < branches.size(); ++i) mine.of[i].commands = std::max(mine.of[i].commands, other.of[i].commands);
        }
        for (size_t i = 1; i < branches.size(); ++i)
            if (now[0].of[i].commands < now[i].of[i].commands) return false;
        return true;
    }
};

// The stream that a handle stands for; null if that is none, or was destroyed.
Stream* stream_of(cudaStream_t given) {
    Device& it = device();
    if (!given) given = it.stream_0_is_per_thread ? cudaStreamPerThread : cudaStreamLegacy;
    if (given == cudaStreamLegacy) return &it.legacy;
    if (given == cudaStreamPerThread) {
        static thread_local Stream* mine = nullptr;
        if (!mine) mine = it.new_stream("per-thread stream", cudaStreamDefault, 0);
        return mine;
    }
    for (auto* stream : it.streams)
        if (handle<cudaStream_t>(stream) == given) return stream->gone ? nullptr : stream;
    return nullptr;
}

void put(const Call& call, Stream& stream, Operation& operation) {
    operation.stream = &stream;
    operation.call = call.name;
    if (stream.capture) return stream.capture->add(call, stream, operation);
    device().put(operation, call.caller);
}

// Work for the legacy stream while a stream that is in order with it is captured, which would have to wait for a capture.
cudaError_t capture_refuses(const Stream& stream) {
    if (!device().captures || &stream != &device().legacy) return cudaSuccess;
    for (auto* other : device().streams) {
        if (!other->capture || !other->blocking) continue;
        other->capture->invalid = true;
        return cudaErrorStreamCaptureImplicit;
    }
    return cudaSuccess;
}

// A wait or a query in the middle of a capture has nothing to ask for.
cudaError_t capture_forbids(Stream& stream) {
    if (!stream.capture) return cudaSuccess;
    stream.capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
}

struct Graph {
    std::vector<Command> commands;
    size_t branches = 0;
    long records = 0;
};
struct Executable {
    const Graph graph;
    std::vector<Stream*> branches;  // but for the first
    Mark* last = nullptr;           // the end of the latest launch: launches of one graph have an order
};

Executable* instantiate(const Graph& graph) {
    auto* made = new Executable{graph, {}, nullptr};
    for (size_t i = 1; i < graph.branches; ++i) {
        char name[Stream::kLongestName];
        snprintf(name, sizeof name, "graph branch %zu", i);
        made->branches.push_back(device().new_stream(name, cudaStreamNonBlocking, 0));
    }
    return made;
}

void launch(const Call& call, Executable& executable, Stream& stream) {
    std::vector<Mark*> marks(size_t(executable.graph.records));
    auto wait_for = [](Operation& operation, Mark* mark) {
        operation.after.push_back({mark->stream, mark->position, kept(mark)});
    };
    if (executable.last) {
        Operation operation;
        wait_for(operation, executable.last);
        put(call, stream, operation);
    }
    for (auto& command : executable.graph.commands) {
        Stream& own = command.branch ? *executable.branches[command.branch - 1] : stream;
        Operation operation;
        operation.stream = &own;
        operation.call = command.call;
        operation.work = command.work;
        operation.owned = false;
        operation.site = command.site;
        if (command.record >= 0) operation.mark = kept(marks[size_t(command.record)] = new Mark(&own));
        if (command.wait >= 0) wait_for(operation, marks[size_t(command.wait)]);
        if (operation.work && !strcmp(operation.work->name(), "launch")) device().counts.launches++;
        device().put(operation, call.caller);
    }
    for (auto* mark : marks) drop(mark);
    drop(executable.last);
    Operation operation;
    operation.mark = kept(executable.last = new Mark(&stream));
    put(call, stream, operation);
}

}  // namespace
