#include "tape.h"

#include <algorithm>

#include "driver.h"

namespace npjit {
namespace {

// runs before there is a graph, rounds of one run from which on there is one at once, and how many
// launches a graph has at most
constexpr npjit_int64 runs_without = 2;
constexpr npjit_int64 least_rounds = 64;
constexpr npjit_int64 largest_graph = 256;

void** parameters_of(Tape& tape, const Launch& launch) {
  return reinterpret_cast<void**>(tape.table.data() + launch.first);
}

Ran raise_error(int error, const Launch* launch) {
  PyObject* label = launch != nullptr && launch->label != nullptr ? launch->label : Py_None;
  PyErr_Format(PyExc_RuntimeError, "the GPU did not start %S: %s", label,
               driver_error(error).c_str());
  return Ran::raised;
}

KernelNode node_of(Tape& tape, const Launch& launch) {
  return {launch.function,
          launch.grid_x,
          launch.grid_y,
          1,
          launch.block,
          1,
          1,
          0,
          parameters_of(tape, launch),
          nullptr,
          nullptr,
          nullptr};
}

Ran start(const Driver& driver, Tape& tape, const Piece& piece, void* stream) {
  for (const Launch& launch : piece.launches) {
    const int error = driver.launch(launch.function, launch.grid_x, launch.grid_y, 1, launch.block,
                                    1, 1, 0, stream, parameters_of(tape, launch), nullptr);
    if (error != 0) {
      return raise_error(error, &launch);
    }
  }
  return Ran::done;
}

// A graph of the launches, `times` times behind each other; 0, or the driver's error.
int make_graph(const Driver& driver, Tape& tape, Piece& piece, npjit_int64 times) {
  LaunchGraph& made = piece.graph;
  int error = driver.create_graph(&made.graph, 0);
  for (npjit_int64 round = 0; round < times; ++round) {
    for (std::size_t i = 0; error == 0 && i < piece.launches.size(); ++i) {
      const KernelNode parameters = node_of(tape, piece.launches[i]);
      void* node = nullptr;
      void* const* before = made.nodes.empty() ? nullptr : &made.nodes.back();
      error = driver.add_kernel(&node, made.graph, before, before != nullptr, &parameters);
      made.nodes.push_back(node);
    }
  }
  made.words = tape.words;
  return error != 0 ? error : driver.instantiate(&made.ready, made.graph, 0);
}

// Gives the nodes whose words have changed their new ones.
int update_graph(const Driver& driver, Tape& tape, Piece& piece) {
  LaunchGraph& graph = piece.graph;
  if (graph.words == tape.words) {
    return 0;
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Launch& launch = piece.launches[i % piece.launches.size()];
    const auto first = tape.words.begin() + launch.first;
    if (std::equal(first, first + launch.words, graph.words.begin() + launch.first)) {
      continue;
    }
    const KernelNode parameters = node_of(tape, launch);
    const int error = driver.change_kernel(graph.ready, graph.nodes[i], &parameters);
    if (error != 0) {
      return error;
    }
  }
  graph.words = tape.words;
  return 0;
}

void drop_graph(LaunchGraph& graph) {
  const Driver* driver = find_driver();
  if (driver != nullptr && graph.ready != nullptr) {
    driver->destroy_ready(graph.ready);
  }
  if (driver != nullptr && graph.graph != nullptr) {
    driver->destroy_graph(graph.graph);
  }
  graph = LaunchGraph();
}

void fill(Tape& tape, const npjit_int64* bases) {
  for (const Patch& patch : tape.patches) {
    tape.words[patch.word] = bases[patch.base] + patch.offset;
  }
}

// Whether a run of so many rounds is worth a graph: making one costs about as much as starting each
// launch of it twice, running it less than starting one launch.
bool wants_graph(const Tape& tape, const Piece& piece, npjit_int64 times) {
  return !piece.launches.empty() && (times >= least_rounds || tape.runs > runs_without);
}

// Runs as many whole graphs as fit in `times` rounds and takes their rounds off.
Ran run_graphs(const Driver& driver, Tape& tape, Piece& piece, const npjit_int64* bases,
               void* stream, npjit_int64& times) {
  const npjit_int64 launches = static_cast<npjit_int64>(piece.launches.size());
  int error = 0;
  if (piece.graph.ready == nullptr) {
    const npjit_int64 most = std::max<npjit_int64>(1, largest_graph / launches);
    error = make_graph(driver, tape, piece, std::min(times, most));
  }
  const npjit_int64 rounds = static_cast<npjit_int64>(piece.graph.nodes.size()) / launches;
  for (; error == 0 && times >= rounds; times -= rounds) {
    // anew: the handler of a signal may have run this tape
    fill(tape, bases);
    error = update_graph(driver, tape, piece);
    error = error != 0 ? error : driver.launch_graph(piece.graph.ready, stream);
    if (error == 0 && PyErr_CheckSignals() != 0) {
      return Ran::raised;
    }
  }
  if (error != 0) {
    drop_graph(piece.graph);
    return raise_error(error, nullptr);
  }
  return Ran::done;
}

Ran run_piece(const Driver& driver, Tape& tape, Piece& piece, const npjit_int64* bases,
              void* stream, npjit_int64 times) {
  // anew for each piece: a host step may have let another thread run this tape
  fill(tape, bases);
  if (wants_graph(tape, piece, times)) {
    const Ran ran = run_graphs(driver, tape, piece, bases, stream, times);
    if (ran != Ran::done) {
      return ran;
    }
    fill(tape, bases);
  }
  for (; times > 0; --times) {
    const Ran ran = start(driver, tape, piece, stream);
    if (ran != Ran::done) {
      return ran;
    }
  }
  return Ran::done;
}

Ran call_host(PyObject* host, const npjit_int64* bases, int count) {
  PyObject* list = PyList_New(count);
  for (int i = 0; list != nullptr && i < count; ++i) {
    PyList_SET_ITEM(list, i, PyLong_FromLongLong(bases[i]));
  }
  PyObject* answer = list != nullptr ? PyObject_CallOneArg(host, list) : nullptr;
  Py_XDECREF(list);
  const Ran ran = answer == nullptr ? Ran::raised : answer == Py_False ? Ran::stopped : Ran::done;
  Py_XDECREF(answer);
  return ran;
}

}  // namespace

Tape::~Tape() {
  for (Piece& piece : pieces) {
    drop_graph(piece.graph);
  }
}

void Tape::settle() {
  table.clear();
  for (npjit_int64& word : words) {
    table.push_back(&word);
  }
}

Ran run_tape(Tape& tape, const npjit_int64* bases, int count, void* stream, npjit_int64 times) {
  const Driver* driver = find_driver();
  if (driver == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "no driver of CUDA: libcuda.so.1 cannot be loaded");
    return Ran::raised;
  }
  tape.runs += 1;
  const bool is_plain = tape.pieces.size() == 1 && tape.pieces[0].host == nullptr;
  for (npjit_int64 round = 0; round < (is_plain ? 1 : times); ++round) {
    for (Piece& piece : tape.pieces) {
      Ran ran = run_piece(*driver, tape, piece, bases, stream, is_plain ? times : 1);
      if (ran == Ran::done && piece.host != nullptr) {
        ran = call_host(piece.host, bases, count);
      }
      if (ran != Ran::done) {
        return ran;
      }
    }
  }
  return Ran::done;
}

}  // namespace npjit
