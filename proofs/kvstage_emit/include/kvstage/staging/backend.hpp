// The backend that an emitted scheme is a template over: what an engine writes once. A scheme needs only what it calls.
//
//     struct Backend {
//         using Stream = ...;  // cheap to copy, such as a handle
//         using Event = ...;   // the same; events are the caller's, and outlive a call
//
//         void copy(Stream, Rows source, Rows target);              // asynchronous, after all earlier work of its stream
//         void copy_batch(Stream, const Copies&);                   // the same, several, in no order among them
//         void gather(Stream, Paged source, Rows target);           // a kernel: row r of target is source.at(r)
//         void scatter(Stream, Rows source, Paged target);          // a kernel: target.at(r) is row r of source
//
//         void host_copy(Rows source, Rows target);                 // the host moves rows itself, and may convert them
//
//         void record_event(Event, Stream);                         // marks what was issued on the stream so far
//         void sync_event(Event);                                   // the host waits for the last record; none: it goes on
//         void wait_event(Stream, Event);                           // the stream's later work waits for it
//         bool query_event(Event);                                  // whether it has ended; never waits
//         void sync_stream(Stream);                                 // the host waits for all that was issued on it
//
//         auto fresh_events(Index count);                           // events of one call: [k] is an Event, never recorded yet
//         void release(Rows);                                       // from now on another party may write the rows
//         void acquire(Rows);                                       // waits until that party has written them
//     };
//
// `Paged` refers to the PagedRows of the call: a kernel that runs later takes what it needs of it when it is issued.
// Kernels, reads and writes of the caller's own are functions that the emitted function takes: (stream, reads, writes) or (rows).
//
// The proof counts on what drivers promise, and a backend must keep: a stream is in order, work begins at or after its issue,
// an event's last record is the one that counts. It does not count on a copy that blocks.
#pragma once

#include "staging.hpp"
