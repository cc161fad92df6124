#include "launch_graph.h"

#include <algorithm>

#include "streams.h"

namespace npjit {
namespace {

// work is recorded beside everything else that threads do
constexpr int relaxed = 2;

KernelNode kernel_of(Tape& tape, const Work& work) {
  const Launch& launch = work.launch;
  return {launch.function, launch.grid_x,         launch.grid_y, 1,       launch.block, 1, 1,
          launch.shared,   tape.parameters(work), nullptr,       nullptr, nullptr};
}

// The graph of what cuBLAS starts for a product that is to run on `stream`.
int record(const Driver& driver, Tape& tape, const Work& work, void* stream, void** graph) {
  void* on = nullptr;
  int error = recording_stream(driver, &on);
  error = error != 0 ? error : driver.begin_capture(on, relaxed);
  if (error != 0) {
    return error;
  }
  error = multiply(work.product, tape.words.data() + work.first, on, stream);
  const int ended = driver.end_capture(on, graph);
  return error != 0 ? error : ended;
}

int add_node(const Driver& driver, Tape& tape, const Work& work, LaunchGraph& made) {
  void* node = nullptr;
  void* const* before = made.nodes.empty() ? nullptr : &made.nodes.back();
  const std::size_t count = made.nodes.size() < 1 ? 0 : 1;
  int error = 0;
  if (work.launch.function != nullptr) {
    const KernelNode parameters = kernel_of(tape, work);
    error = driver.add_kernel(&node, made.graph, before, count, &parameters);
  } else {
    void* part = nullptr;
    error = record(driver, tape, work, made.stream, &part);
    error = error != 0 ? error : driver.add_child(&node, made.graph, before, count, part);
    if (part != nullptr) {
      driver.destroy_graph(part);
    }
  }
  made.nodes.push_back(node);
  return error;
}

int change_node(const Driver& driver, Tape& tape, const Work& work, void* node,
                const LaunchGraph& graph) {
  if (work.launch.function != nullptr) {
    const KernelNode parameters = kernel_of(tape, work);
    return driver.change_kernel(graph.ready, node, &parameters);
  }
  void* part = nullptr;
  int error = record(driver, tape, work, graph.stream, &part);
  error = error != 0 ? error : driver.change_child(graph.ready, node, part);
  if (part != nullptr) {
    driver.destroy_graph(part);
  }
  return error;
}

void note_words(const Tape& tape, const Piece& piece, LaunchGraph& graph) {
  const auto words = tape.words.begin();
  graph.words.assign(words + piece.first_word, words + piece.end_word);
}

int make_graph(const Driver& driver, Tape& tape, Piece& piece, void* stream, LaunchGraph& made) {
  made.stream = stream;
  int error = driver.create_graph(&made.graph, 0);
  for (std::size_t i = 0; error == 0 && i < piece.works.size(); ++i) {
    error = add_node(driver, tape, piece.works[i], made);
  }
  note_words(tape, piece, made);
  return error != 0 ? error : driver.instantiate(&made.ready, made.graph, 0);
}

// Gives the nodes whose words have changed their new ones.
int change_graph(const Driver& driver, Tape& tape, Piece& piece, void* stream, LaunchGraph& graph) {
  const bool same_stream = graph.stream == stream;
  graph.stream = stream;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Work& work = piece.works[i];
    const auto first = tape.words.begin() + work.first;
    const bool same = std::equal(first, first + work.words,
                                 graph.words.begin() + (work.first - piece.first_word));
    if (same && (same_stream || work.launch.function != nullptr)) {
      continue;
    }
    const int error = change_node(driver, tape, work, graph.nodes[i], graph);
    if (error != 0) {
      return error;
    }
  }
  note_words(tape, piece, graph);
  return 0;
}

bool is_like(const Tape& tape, const Piece& piece, void* stream, const LaunchGraph& graph) {
  return graph.ready != nullptr && graph.stream == stream &&
         std::equal(graph.words.begin(), graph.words.end(), tape.words.begin() + piece.first_word);
}

}  // namespace

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

bool run_as_graph(const Driver& driver, Tape& tape, Piece& piece, void* stream) {
  for (const int number : {piece.last, 1 - piece.last}) {
    if (is_like(tape, piece, stream, piece.graphs[number])) {
      piece.last = number;
      return driver.launch_graph(piece.graphs[number].ready, stream) == 0;
    }
  }
  // the one that ran last is left for the next call but one
  piece.last = piece.graphs[0].ready == nullptr ? 0 : 1 - piece.last;
  LaunchGraph& graph = piece.graphs[piece.last];
  int error = 0;
  if (graph.ready == nullptr) {
    error = make_graph(driver, tape, piece, stream, graph);
    piece.is_plain = error != 0;
  } else {
    error = change_graph(driver, tape, piece, stream, graph);
  }
  error = error != 0 ? error : driver.launch_graph(graph.ready, stream);
  if (error != 0) {
    // the launches themselves will tell what is wrong, if they cannot be started either
    drop_graph(graph);
  }
  return error == 0;
}

}  // namespace npjit
