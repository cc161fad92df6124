#include "tape.h"

#include <algorithm>
#include <string>

#include "driver.h"
#include "launch_graph.h"
#include "streams.h"

namespace npjit {
namespace {

// runs before there is a graph, whose making costs about as much as starting each launch twice; and
// how much work a graph has at most
constexpr npjit_int64 runs_without = 2;
constexpr std::size_t largest_graph = 256;

// One call of run_tape.
struct Run {
  const Driver& driver;
  const npjit_int64* bases;
  int count;
  void* stream;
};

Ran run(const Run& call, Tape& tape);

Ran raise_error(const std::string& error, PyObject* label) {
  if (PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_RuntimeError, "the GPU did not start %S: %s", label, error.c_str());
  }
  return Ran::raised;
}

Ran start(const Run& call, Tape& tape, const Work& work) {
  const Launch& launch = work.launch;
  if (launch.function == nullptr) {
    const npjit_int64* addresses = tape.words.data() + work.first;
    const int error = multiply(work.product, addresses, call.stream, call.stream);
    return error == 0 ? Ran::done
                      : raise_error("cuBLAS's status " + std::to_string(error), launch.label);
  }
  const int error =
      call.driver.launch(launch.function, launch.grid_x, launch.grid_y, 1, launch.block, 1, 1,
                         launch.shared, call.stream, tape.parameters(work), nullptr);
  return error == 0 ? Ran::done : raise_error(driver_error(error), launch.label);
}

void fill(Tape& tape, const Piece& piece, const npjit_int64* bases) {
  for (int i = piece.first_patch; i < piece.end_patch; ++i) {
    const Patch& patch = tape.patches[i];
    tape.words[patch.word] = bases[patch.base] + patch.offset;
  }
}

Ran run_works(const Run& call, Tape& tape, Piece& piece) {
  if (piece.works.empty()) {
    return Ran::done;
  }
  if (piece.multiplies && !find_workspace(call.stream)) {
    return Ran::raised;
  }
  // anew for each piece: between two another thread may have run this tape, and none while it runs
  fill(tape, piece, call.bases);
  const bool wants_graph = tape.runs > runs_without && !piece.is_plain;
  if (wants_graph && run_as_graph(call.driver, tape, piece, call.stream)) {
    return Ran::done;
  }
  for (const Work& work : piece.works) {
    const Ran ran = start(call, tape, work);
    if (ran != Ran::done) {
      return ran;
    }
  }
  return Ran::done;
}

Ran call_host(const Run& call, PyObject* host) {
  PyObject* list = PyList_New(call.count);
  for (int i = 0; list != nullptr && i < call.count; ++i) {
    PyList_SET_ITEM(list, i, PyLong_FromLongLong(call.bases[i]));
  }
  PyObject* answer = list != nullptr ? PyObject_CallOneArg(host, list) : nullptr;
  Py_XDECREF(list);
  const Ran ran = answer == nullptr ? Ran::raised : answer == Py_False ? Ran::stopped : Ran::done;
  Py_XDECREF(answer);
  return ran;
}

// A byte of memory that the GPU copies to without a further copy, for each thread.
unsigned char* landing(const Driver& driver) {
  constexpr unsigned for_all_gpus = 1;
  static thread_local void* made = nullptr;
  if (made == nullptr && driver.allocate_host(&made, 1, for_all_gpus) != 0) {
    made = nullptr;
  }
  return static_cast<unsigned char*>(made);
}

// A bool on its way to the host, behind the work of a stream.
struct Reading {
  unsigned char* value = nullptr;
  void* stream = nullptr;
  int error = 0;
};

Reading start_reading(const Run& call, const Flag& flag, void* stream) {
  Reading reading{landing(call.driver), stream, 0};
  reading.error = reading.value == nullptr;
  if (reading.error == 0) {
    const auto address = static_cast<unsigned long long>(call.bases[flag.base] + flag.offset);
    reading.error = call.driver.copy_to_host(reading.value, address, 1, stream);
  }
  return reading;
}

// The bool's value; -1 with an exception set.
int finish_reading(const Run& call, Reading reading) {
  if (reading.error == 0) {
    Py_BEGIN_ALLOW_THREADS;
    reading.error = call.driver.wait(reading.stream);
    Py_END_ALLOW_THREADS;
  }
  if (reading.error != 0) {
    PyErr_Format(PyExc_RuntimeError, "the GPU did not give a condition: %s",
                 driver_error(reading.error).c_str());
    return -1;
  }
  return *reading.value != 0 ? 1 : 0;
}

// The bool's value when all work before is done; -1 with an exception set.
int read(const Run& call, const Flag& flag) {
  return finish_reading(call, start_reading(call, flag, call.stream));
}

// Whether one of the stops is true; -1 with an exception set.
int is_over(const Run& call, const std::vector<Flag>& stops) {
  for (const Flag& stop : stops) {
    const int value = read(call, stop);
    if (value != 0) {
      return value;
    }
  }
  return PyErr_CheckSignals();
}

Ran run_repeat(const Run& call, const Piece& piece) {
  for (npjit_int64 trip = 0; trip < piece.times; ++trip) {
    const int over = is_over(call, piece.stops);
    if (over != 0) {
      return over < 0 ? Ran::raised : Ran::done;
    }
    const Ran ran = run(call, *piece.bodies[trip % piece.bodies.size()]);
    if (ran != Ran::done) {
      return ran;
    }
  }
  return Ran::done;
}

Ran run_loop(const Run& call, const Piece& piece) {
  for (;;) {
    const int over = is_over(call, piece.stops);
    if (over != 0) {
      return over < 0 ? Ran::raised : Ran::done;
    }
    Ran ran = run(call, *piece.bodies[0]);
    if (ran != Ran::done) {
      return ran;
    }
    const int holds = read(call, piece.flag);
    if (holds <= 0) {
      return holds < 0 ? Ran::raised : Ran::done;
    }
    ran = run(call, *piece.bodies[1]);
    if (ran != Ran::done) {
      return ran;
    }
  }
}

// The GPU goes on with the body while the answer comes on another stream.
Ran run_ahead(const Run& call, const Piece& piece) {
  void* behind = nullptr;
  const int error = stream_behind(call.driver, call.stream, &behind);
  Reading reading{nullptr, behind, error};
  if (error == 0) {
    reading = start_reading(call, piece.flag, behind);
  }
  const Ran ran = run(call, *piece.bodies[0]);
  const int value = finish_reading(call, reading);
  if (value < 0) {
    return Ran::raised;
  }
  return value != 0 || ran == Ran::raised ? ran : Ran::stopped;
}

Ran run_control(const Run& call, const Piece& piece) {
  switch (piece.control) {
    case Control::none:
      return Ran::done;
    case Control::host:
      return call_host(call, piece.host);
    case Control::repeat:
      return run_repeat(call, piece);
    case Control::loop:
      return run_loop(call, piece);
    case Control::require:
      if (!piece.bodies.empty()) {
        return run_ahead(call, piece);
      }
      break;
    default:
      break;
  }
  const int value = read(call, piece.flag);
  if (value < 0) {
    return Ran::raised;
  }
  if (piece.control == Control::branch) {
    return run(call, *piece.bodies[value != 0 ? 0 : 1]);
  }
  return value != 0 ? Ran::done : Ran::stopped;
}

// Blocks get no more than 48 KB of shared memory unless the function is told so; where it cannot be,
// the launch will fail.
void allow_shared(const Launch& launch) {
  constexpr int most_dynamic_shared = 8;
  const Driver* driver = launch.shared > 0 ? find_driver() : nullptr;
  if (driver != nullptr) {
    driver->change_function(launch.function, most_dynamic_shared, static_cast<int>(launch.shared));
  }
}

Ran run(const Run& call, Tape& tape) {
  tape.runs += 1;
  for (Piece& piece : tape.pieces) {
    Ran ran = run_works(call, tape, piece);
    ran = ran == Ran::done ? run_control(call, piece) : ran;
    if (ran != Ran::done) {
      return ran;
    }
  }
  return Ran::done;
}

}  // namespace

Tape::~Tape() {
  for (Piece& piece : pieces) {
    std::for_each(piece.graphs.begin(), piece.graphs.end(), drop_graph);
  }
}

Piece& Tape::open() {
  const bool is_open = !pieces.empty() && pieces.back().control == Control::none;
  if (!is_open || pieces.back().works.size() == largest_graph) {
    pieces.emplace_back();
  }
  return pieces.back();
}

void Tape::settle() {
  table.clear();
  for (npjit_int64& word : words) {
    table.push_back(&word);
  }
  const auto place = [this](int word) {
    const auto found = std::lower_bound(patches.begin(), patches.end(), word,
                                        [](const Patch& p, int value) { return p.word < value; });
    return static_cast<int>(found - patches.begin());
  };
  for (Piece& piece : pieces) {
    for (const Work& work : piece.works) {
      allow_shared(work.launch);
      const bool is_first = &work == &piece.works.front();
      piece.first_word = is_first ? work.first : std::min(piece.first_word, work.first);
      piece.end_word = std::max(piece.end_word, work.first + work.words);
      piece.multiplies = piece.multiplies || work.launch.function == nullptr;
    }
    piece.first_patch = place(piece.first_word);
    piece.end_patch = place(piece.end_word);
  }
}

Ran run_tape(Tape& tape, const npjit_int64* bases, int count, void* stream) {
  const Driver* driver = find_driver();
  if (driver == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "no driver of CUDA: libcuda.so.1 cannot be loaded");
    return Ran::raised;
  }
  return run({*driver, bases, count, stream}, tape);
}

}  // namespace npjit
