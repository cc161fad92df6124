// The work of a piece as one graph of the driver's, made anew or changed to other addresses.
//
//     run_as_graph(driver, tape, piece, stream)       // 0: started; else the piece has no graph
#ifndef NPJIT_LAUNCH_GRAPH_H
#define NPJIT_LAUNCH_GRAPH_H
#include "driver.h"
#include "tape.h"

namespace npjit {

// Starts the piece's works, whose words are filled in, as a graph; false: nothing was started.
bool run_as_graph(const Driver& driver, Tape& tape, Piece& piece, void* stream);

void drop_graph(LaunchGraph& graph);

}  // namespace npjit
#endif
