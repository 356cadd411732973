// The device: its streams, what they have yet to do, and what makes them do it. Everything happens inside calls of the API, under one lock;
// the host functions of streams alone run on a thread of their own, as a driver's do.
#pragma once
#include "lock.hpp"
#include "log.hpp"
#include "schedule.hpp"

namespace {

// A thread that is inside a call of the API, and what it waits for.
struct Waiting {
    const char* call;
    Stream* stream;
    Site site;
};

struct Device {
    static constexpr int kLeast = 0, kGreatest = -5;  // priorities of streams, which promise nothing

    Lock lock;
    Log log;
    Schedule schedule{getenv("KVSTAGE_SCHEDULE")};
    const bool implicit_sync = switched_on("KVSTAGE_IMPLICIT_SYNC");
    Stream legacy{"default stream", cudaStreamDefault, 0, schedule.speed()};
    std::vector<Stream*> streams{&legacy};
    bool stream_0_is_per_thread = false;
    kvstage_counts_t counts{};
    long ids = 0, names = 0, pending = 0, captures = 0;
    unsigned long activity = 0;  // grows with each call and each operation: the watchdog looks at it
    std::vector<Waiting*> waiting;
    const char* last_call = "";
    void* last_caller = nullptr;
    Operation* at_work = nullptr;  // a host function: one at a time

    Device();
    Stream* new_stream(const char* name, unsigned flags, int priority);
    void put(Operation& operation, void* caller);
    void wait(const Point& point, const char* call, void* caller);
    void force(const Point& point);
    void progress();
    void let_go();
    bool step(Stream& stream);
    void advance(Operation& operation, int last, const Edge& issued);
    void pop(Stream& stream);
    void run_host_function(Operation& operation);
};

Device& device() {
    static auto* it = new Device;  // never destroyed: destructors of the program's own may still call
    return *it;
}

// In watchdog.hpp: the threads that look after the program, and that run host functions.
void watch();
void post_host_function();

// What is pending when the process ends is dropped, as its device ends with it.
Device::Device() {
    atexit([] { device().log.end(device().counts); });
    if (getenv("KVSTAGE_WATCHDOG")) watch();
}

thread_local const Operation* happening = nullptr;  // in this thread, for AddressSanitizer's reports

// Half after half of the front operation of a stream, up to `last`. The lock is held, but for a host function.
void Device::advance(Operation& operation, int last, const Edge& issued) {
    ++activity;
    const int first = operation.halves;
    if (log.tracing() && first == 0) log.line("begin\t%ld", operation.id);
    if (operation.work || under_tsan()) {
        auto body = [&operation, &issued, first, last] {
            if (first == 0) {
                issued.acquire();
                for (auto& point : operation.after) acquire(point);
            }
            if (operation.work) operation.work->run(first, last);
            if (last < 2) return;
            if (operation.mark) operation.mark->edge.release();
            operation.stream->edge.release();
            if (operation.owned) delete operation.work;  // here: what the work holds of the program's is in order on the fiber alone
        };
        happening = &operation;
        operation.stream->fiber.run(operation.site, operation.work && operation.work->runs_own_code(), body);
        happening = nullptr;
    }
    operation.halves = last;
    if (last < 2) return;
    if (log.tracing()) log.line("end\t%ld", operation.id);
    for (auto& point : operation.after) drop(point.mark);
    drop(operation.mark);
    ++operation.stream->ended;
}

void Device::pop(Stream& stream) {
    delete stream.queue.front();
    stream.queue.pop_front();
    --pending;
    if (stream.gone && stream.queue.empty()) stream.fiber.end();
}

// Begins the host function at the front of a stream, and lets it have a moment, so that it has mostly ended when the call returns.
void Device::run_host_function(Operation& operation) {
    constexpr double kMoment = 0.1;
    if (at_work) return;
    operation.running = true;
    at_work = &operation;
    watch();
    post_host_function();
    const double begun = seconds_now();
    for (int tries = 0; at_work == &operation && seconds_now() - begun < kMoment; ++tries) {
        lock.give();
        Lock::pause(tries);
        lock.take();
    }
}

// One step of a stream, if the schedule allows one. Whether there was one.
bool Device::step(Stream& stream) {
    if (stream.queue.empty()) return false;
    Operation& front = *stream.queue.front();
    if (front.running) return false;
    for (auto& point : front.after)
        if (!reached(point)) return false;
    int last = front.halves;
    while (last < 2 && (front.released || schedule.lets(front.number, last, stream.speed))) ++last;
    if (last == front.halves) return false;
    if (front.work && front.work->on_host_thread()) {
        if (last < 2 || at_work) return false;
        run_host_function(front);
        return true;
    }
    advance(front, last, front.issued);
    if (last == 2) pop(stream);
    return true;
}

// All that the schedule lets happen now.
void Device::progress() {
    if (!pending) return;
    for (bool moved = true; moved && pending;) {
        moved = false;
        for (size_t i = 0; i < streams.size(); ++i)  // a host function may add one
            while (step(*streams[i])) moved = true;
    }
}

// The schedule holds back nothing of what is pending any longer.
void Device::let_go() {
    for (auto* stream : streams)
        for (auto* operation : stream->queue) operation->released = true;
    progress();
}

// Makes streams go on, whatever the schedule says, until one has come to a point. What it waits for was issued earlier: there is no circle.
void Device::force(const Point& point) {
    std::vector<Point> todo{point};
    for (int tries = 0; !todo.empty();) {
        const Point next = todo.back();
        if (reached(next)) {
            todo.pop_back();
            continue;
        }
        Operation& front = *next.stream->queue.front();
        const size_t before = todo.size();
        for (auto& each : front.after)
            if (!reached(each)) todo.push_back(each);
        if (todo.size() != before) continue;
        if (front.work && front.work->on_host_thread()) {
            if (!front.running) run_host_function(front);
            if (at_work) {
                lock.give();
                Lock::pause(tries++);
                lock.take();
            }
            continue;
        }
        advance(front, 2, front.issued);
        pop(*next.stream);
    }
}

// The host waits. `call` and `caller` are told by the watchdog.
void Device::wait(const Point& point, const char* call, void* caller) {
    if (!reached(point)) {
        Waiting self{call, point.stream, {}};
        self.site.take(caller);
        waiting.push_back(&self);
        force(point);
        for (size_t i = 0; i < waiting.size(); ++i)
            if (waiting[i] == &self) waiting.erase(waiting.begin() + long(i));
    }
    acquire(point);
    progress();
}

// Puts an operation into its stream, in order with the legacy stream, and lets happen what may.
void Device::put(Operation& operation, void* caller) {
    Stream& stream = *operation.stream;
    auto after = [&](Stream& other, uint64_t& seen) {
        if (other.issued <= seen) return;
        operation.after.push_back({&other, other.issued, nullptr});
        log.line("after\t%s\t%s", stream.name, other.name);
        seen = other.issued;
    };
    if (&stream == &legacy) {
        for (auto* other : streams)
            if (other != &stream && other->blocking) after(*other, other->seen_by_legacy);
    } else if (stream.blocking) {
        after(legacy, stream.seen_legacy);
    }
    operation.id = ids++;
    if (operation.work) operation.number = long(counts.operations++);
    ++stream.issued;
    if (operation.mark) {
        operation.mark->stream = &stream;
        operation.mark->position = stream.issued;
    }
    log.issued(operation);
    if ((under_tsan() || under_asan()) && !operation.site.depth) operation.site.take(caller);
    bool now = schedule.eager() && stream.queue.empty() && !(operation.work && operation.work->on_host_thread());
    for (auto& point : operation.after) now = now && reached(point);
    if (now) {
        stream.issuing.release();
        return advance(operation, 2, stream.issuing);
    }
    if (!operation.site.depth) operation.site.take(caller);
    auto* later = new Operation(operation);
    later->issued.release();
    stream.queue.push_back(later);
    ++pending;
    watch();
    progress();
}

Stream* Device::new_stream(const char* name, unsigned flags, int priority) {
    streams.push_back(new Stream(name, flags, priority, schedule.speed()));
    return streams.back();
}

// A call of the API, from its begin to its end.
class Call {
   public:
    const char* const name;
    void* const caller;

    explicit Call(const char* called, void* from = __builtin_return_address(0)) : name(called), caller(from) {
        Device& it = device();
        it.lock.take();
        ++it.activity;
        it.last_call = name;
        it.last_caller = caller;
    }
    ~Call() { device().lock.give(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    void wait(const Point& point) const { device().wait(point, name, caller); }

   private:
    Unseen unseen_;
};

}  // namespace

extern "C" KVSTAGE_WEAK void __asan_on_error() {
    if (happening) device().log.during(happening->site);
}
