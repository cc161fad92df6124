// Launches of a plan, ready for one set of sizes: everything but addresses is filled in.
//
// The parameters of all launches and products are words of 64 bits in one block of memory. Before a
// run starts anything it writes the words that differ from call to call: word = base + offset, where
// the bases are what the caller counts up (addresses of arrays, scalar arguments). Between launches
// there may be loops, branches and steps of the host, which are callables.
//
//     words   [x's address, y's address, 1000]     patches  word 0 is base 0, word 1 is base 1
//     pieces  launch k0 with the words from 0 on; 100 times the tape of a loop's body; launch k1
#ifndef NPJIT_TAPE_H
#define NPJIT_TAPE_H
#include <Python.h>

#include <array>
#include <vector>

#include "abi.h"
#include "cublas.h"

namespace npjit {

struct Launch {
  void* function = nullptr;
  unsigned grid_x = 1;
  unsigned grid_y = 1;
  unsigned block = 1;
  unsigned shared = 0;        // bytes of a block's shared memory beside what the function declares
  PyObject* label = nullptr;  // what an error calls it
};

// A launch, or a product when there is no function. Its parameters are `words` words from number
// `first` on.
struct Work {
  Launch launch;
  Product product;
  int first = 0;
  int words = 0;
};

struct Patch {
  int word = 0;
  int base = 0;
  npjit_int64 offset = 0;
};

// A bool in the GPU's memory.
struct Flag {
  int base = 0;
  npjit_int64 offset = 0;
};

// Work that follows each other as one graph of the driver's: it is started in about half the time of
// one launch.
struct LaunchGraph {
  void* graph = nullptr;
  void* ready = nullptr;
  std::vector<void*> nodes;
  std::vector<npjit_int64> words;  // what the nodes' parameters are
  void* stream = nullptr;          // whose workspace the products use
};

struct Tape;

// What is behind the launches of a piece.
enum class Control : unsigned char {
  none,
  host,     // a callable
  require,  // stop unless the flag is true; the body, if there is one, starts before that is known
  repeat,   // the bodies by turns, `times` trips, until one of the stops is true
  loop,     // as long as the first body leaves the flag true, and none of the stops: the second
  branch,   // the first body where the flag is true, else the second
};

struct Piece {
  std::vector<Work> works;
  Control control = Control::none;
  PyObject* host = nullptr;
  Flag flag;
  std::vector<Flag> stops;
  std::vector<Tape*> bodies;
  npjit_int64 times = 0;

  // the work for the last two sets of addresses: in `y = f(x)` results take turns
  std::array<LaunchGraph, 2> graphs;
  int last = 0;           // which one ran last
  bool is_plain = false;  // there can be no graph
  bool multiplies = false;
  // the words and patches of the works
  int first_word = 0, end_word = 0, first_patch = 0, end_patch = 0;
};

struct Tape {
  std::vector<npjit_int64> words;
  std::vector<npjit_int64*> table;  // the addresses of all words
  std::vector<Patch> patches;       // by their words
  std::vector<Piece> pieces;
  npjit_int64 runs = 0;

  Tape() = default;
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // The last piece, if nothing is behind its works yet and it has room for one more, or a new one.
  Piece& open();
  // Fills what follows from the rest; to be called when that is there.
  void settle();
  void** parameters(const Work& work) {
    return reinterpret_cast<void**>(table.data() + work.first);
  }
};

enum class Ran {
  done,
  stopped,    // a host step returned False, or a flag that is required is not true
  raised,     // an exception is set
  no_memory,  // one is set, and nothing was started
};

// Starts everything on a stream. A host step is called with the list of all bases.
Ran run_tape(Tape& tape, const npjit_int64* bases, int count, void* stream);

}  // namespace npjit
#endif
