// What is put into a stream, and streams themselves.
#pragma once
#include <deque>
#include <vector>

#include "../include/kvstage/types.h"
#include "sanitizers.hpp"

namespace {

struct Stream;
struct Capture;

struct Range {
    const char* begin;
    size_t bytes;
    bool meets(const Range& other) const { return begin < other.begin + other.bytes && other.begin < begin + bytes; }
};

// What an operation does, in two halves: a schedule may hold it between them.
class Work {
   public:
    virtual ~Work() = default;
    virtual void run(int first, int last) = 0;  // halves first .. last - 1
    virtual bool runs_own_code() const { return false; }  // the program's, which needs a stack of its own
    virtual bool on_host_thread() const { return false; }
    virtual bool touches(const Range&) const { return false; }
    virtual const char* name() const = 0;
    virtual void write(FILE* log) const = 0;  // as fields of the log
};

// A place in a stream that an event, or a wait, stands for: after the first `position` operations. Counted, as events share it.
struct Mark {
    Stream* stream;
    uint64_t position = 0;
    Edge edge;
    int references = 1;
    Capture* capture = nullptr;  // or a place in a graph that is being captured: record number `position` of it
    explicit Mark(Stream* of) : stream(of) {}
};
Mark* kept(Mark* mark) {
    if (mark) ++mark->references;
    return mark;
}
void drop(Mark* mark) {
    if (mark && --mark->references == 0) delete mark;
}

// All that a stream has to do before: up to a mark, or up to what it has got now. In the second case it does no more until then.
struct Point {
    Stream* stream;
    uint64_t position;
    Mark* mark;
};

struct Event {
    Mark* mark = nullptr;  // of its latest record
    unsigned flags = 0, index = 0;
    char name[64] = "";
};

struct Operation {
    Stream* stream = nullptr;
    Work* work = nullptr;  // null: a record or a wait
    bool owned = true;     // the work is deleted after the operation; a graph's is not
    Mark* mark = nullptr;  // what is reached with it
    const Event* event = nullptr;  // that is recorded or waited for
    long number = -1, id = -1;
    const char* call = "";
    int halves = 0;                          // that have happened
    bool running = false, released = false;  // by the host thread; no longer held by the schedule
    Edge issued;                // by the host, unless the operation happens at once: then it is the stream's
    std::vector<Point> after;
    Site site;
};

struct Stream {
    static constexpr int kLongestName = 64;
    bool blocking;  // in order with the legacy stream
    unsigned flags, speed;
    int priority;
    bool gone = false;
    char name[kLongestName];
    std::deque<Operation*> queue;
    uint64_t issued = 0, ended = 0;
    uint64_t seen_legacy = 0, seen_by_legacy = 0;  // how much of the one the other is in order with already
    Edge edge;                                     // the end of its latest operation
    Edge issuing;                                  // the issue of an operation that happens at once
    Fiber fiber;
    Capture* capture = nullptr;

    Stream(const char* called, unsigned with, int prior, unsigned fast)
        : blocking(!(with & cudaStreamNonBlocking)), flags(with), speed(fast), priority(prior), fiber(called) {
        rename(called);
    }
    void rename(const char* called) {
        snprintf(name, sizeof name, "%s", called);
        fiber.rename(name);
    }
};

bool reached(const Point& point) { return point.stream->ended >= point.position; }

// On the fiber of what comes after.
void acquire(const Point& point) { point.mark ? point.mark->edge.acquire() : point.stream->edge.acquire(); }

// What the program holds are our own pointers, by CUDA's names.
template <class Handle, class T>
Handle handle(T* ours) {
    return reinterpret_cast<Handle>(ours);
}
Event& event_of(cudaEvent_t given) { return *reinterpret_cast<Event*>(given); }

}  // namespace
