// Streams of the runtime's own, one of each kind for each GPU.
//
//     void* behind = nullptr;
//     stream_behind(driver, stream, &behind);   // what it is given now waits for the other's work
#ifndef NPJIT_STREAMS_H
#define NPJIT_STREAMS_H

#include "driver.h"

namespace npjit {

// The current GPU's stream for recording graphs; 0, or an error's number.
int recording_stream(const Driver& driver, void** found);
// The current GPU's stream whose further work begins when all that `stream` was given is done.
int stream_behind(const Driver& driver, void* stream, void** found);

}  // namespace npjit
#endif
