// What a test may ask the runtime, and may tell it so that a run can be read as a trace of kvstage's: names, the rows of buffers, what the
// host does with them, and where a call of the scheme begins. Nothing of this changes what happens.
#pragma once
#include <cstddef>

#include "types.h"

extern "C" {

struct kvstage_counts_t {
    unsigned long operations;  // all that was put into streams, waits and records apart
    unsigned long copies, bytes, launches;
    unsigned long waits;  // of the host: for a stream, an event, the device, or inside a blocking copy
};
kvstage_counts_t kvstage_counts(void);

void kvstage_name_stream(cudaStream_t stream, const char* name);
void kvstage_name_event(cudaEvent_t event, const char* name, unsigned int index);

// Memory of `slots` slots of `rows` rows of `row_bytes` bytes each, one after the other: a pool's blocks, or the slots of a staging ring.
void kvstage_name_buffer(const void* memory, const char* name, size_t slots, size_t rows, size_t row_bytes);

// A call of the scheme begins: its arguments as the JSON object that docs/traces.md describes.
void kvstage_begin_call(const char* arguments);

// What the host does from here on comes from the caller, after the call.
void kvstage_end_call(void);

// The host copies, reads, or writes. kvstage_host_copy makes the copy, by memcpy, and the other two only say so.
void kvstage_note_host_copy(const void* target, const void* source, size_t bytes);
void kvstage_note_host_read(const void* source, size_t bytes);
void kvstage_note_host_write(const void* target, size_t bytes);
}

#include <cstring>
inline void kvstage_host_copy(void* target, const void* source, size_t bytes) {
    kvstage_note_host_copy(target, source, bytes);
    std::memcpy(target, source, bytes);
}
