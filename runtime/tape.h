// Launches of a plan, ready for one set of sizes: everything but addresses is filled in.
//
// The parameters of all launches are words of 64 bits in one block of memory. Before it starts
// anything, a run writes the words that differ from call to call: word = base + offset, where the
// bases are what the caller counts up (addresses of arrays, scalar arguments). Between launches
// there may be steps of the host: callables.
//
//     words   [x's address, y's address, 1000]     patches  word 0 is base 0, word 1 is base 1
//     pieces  launch k0 with the words from 0 on, then call a matrix product, then launch k1
#ifndef NPJIT_TAPE_H
#define NPJIT_TAPE_H
#include <Python.h>

#include <vector>

#include "abi.h"

namespace npjit {

struct Launch {
  void* function = nullptr;
  unsigned grid_x = 1;
  unsigned grid_y = 1;
  unsigned block = 1;
  int first = 0;  // number of its first word
  int words = 0;
  PyObject* label = nullptr;  // what an error calls it
};

struct Patch {
  int word = 0;
  int base = 0;
  npjit_int64 offset = 0;
};

// Launches that follow each other as one graph of the driver's, made on the third run: a graph is
// started in about half the time of one launch, other parameters included.
struct LaunchGraph {
  void* graph = nullptr;
  void* ready = nullptr;
  std::vector<void*> nodes;
  std::vector<npjit_int64> words;  // what the nodes' parameters are
};

// Launches, and the host step behind them: null at the end.
struct Piece {
  std::vector<Launch> launches;
  PyObject* host = nullptr;
  LaunchGraph graph;
};

struct Tape {
  std::vector<npjit_int64> words;
  std::vector<npjit_int64*> table;  // the addresses of all words
  std::vector<Patch> patches;
  std::vector<Piece> pieces;
  npjit_int64 runs = 0;

  Tape() = default;
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Fills `table`; to be called when all else is there.
  void settle();
};

enum class Ran {
  done,
  stopped,    // a host step returned False
  raised,     // an exception is set
  no_memory,  // one is set, and nothing was started
};

// Starts everything `times` times on a stream. A host step is called with the list of all bases.
Ran run_tape(Tape& tape, const npjit_int64* bases, int count, void* stream, npjit_int64 times);

}  // namespace npjit
#endif
