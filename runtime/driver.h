// CUDA's driver, found at run time: no CUDA headers, nothing to link.
//
//     const Driver* driver = find_driver();      // null without libcuda.so.1
//     driver->launch(function, 8, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr)   // 0, or an error's number
#ifndef NPJIT_DRIVER_H
#define NPJIT_DRIVER_H
#include <string>

namespace npjit {

// What the driver calls CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  void* function;
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};

// The driver's functions as this runtime calls them; handles are opaque, 0 is success.
struct Driver {
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                void** parameters, void** extra);
  int (*current_device)(int* device);
  int (*error_name)(int error, const char** name);
  int (*create_graph)(void** graph, unsigned flags);
  int (*add_kernel)(void** node, void* graph, void* const* after, std::size_t count,
                    const KernelNode* parameters);
  int (*instantiate)(void** ready, void* graph, unsigned long long flags);
  int (*change_kernel)(void* ready, void* node, const KernelNode* parameters);
  int (*launch_graph)(void* ready, void* stream);
  int (*destroy_graph)(void* graph);
  int (*destroy_ready)(void* ready);
  int (*create_stream)(void** stream, unsigned flags);
  int (*begin_capture)(void* stream, int mode);
  int (*end_capture)(void* stream, void** graph);
  int (*add_child)(void** node, void* graph, void* const* after, std::size_t count, void* child);
  int (*change_child)(void* ready, void* node, void* child);
  int (*allocate_host)(void** memory, std::size_t bytes, unsigned flags);
  int (*copy_to_host)(void* to, unsigned long long from, std::size_t bytes, void* stream);
  int (*wait)(void* stream);
  int (*create_event)(void** event, unsigned flags);
  int (*record_event)(void* event, void* stream);
  int (*wait_for_event)(void* stream, void* event, unsigned flags);
  int (*change_function)(void* function, int attribute, int value);
};

constexpr int driver_function_count = 22;
// Their names in libcuda.so.1, in the order of the members.
extern const char* const driver_function_names[driver_function_count];

// The functions of libcuda.so.1, or those that set_driver gave; null when there are none.
const Driver* find_driver();
// Uses these functions in place of libcuda's: addresses in the order of the names; null: libcuda's.
void set_driver(void* const* functions);
// What the driver calls an error.
std::string driver_error(int error);

}  // namespace npjit
#endif
