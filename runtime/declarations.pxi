"""The C++ side as Cython sees it; the headers say what each part does."""

from cpython.object cimport PyObject
from libc.string cimport memcmp
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.unordered_set cimport unordered_set
from libcpp.vector cimport vector

ctypedef void* void_pointer


cdef extern from "abi.h" nogil:
    ctypedef long long npjit_int64


cdef extern from "pool.h" namespace "npjit::pool" nogil:
    cdef cppclass Stats:
        size_t live_bytes, live_blocks, idle_bytes, idle_blocks, bound, reused, fresh
    void trim_pool "npjit::pool::trim"(size_t keep)
    void set_bound(size_t bytes)
    Stats stats()


cdef extern from "threads.h" namespace "npjit::threads" nogil:
    int default_count()
    int count()
    void set_count(int threads)


cdef extern from "blas.h" namespace "npjit::blas" nogil:
    const int function_count
    const char* const function_names[]
    cdef cppclass Library:
        string path, prefix, suffix
        void* functions[10]
        int (*get_threads)() nogil
        void (*set_threads)(int) nogil
    const Library& library() except +


cdef extern from "service.h" namespace "npjit" nogil:
    void set_main_thread(unsigned long identifier)


cdef extern from "host.h" namespace "npjit":
    void set_host_callable "npjit::set_host"(PyObject* callable)


cdef extern from "object.h" namespace "npjit":
    cdef cppclass Functions:
        pass
    cdef cppclass SharedObject:
        void* handle
        Functions functions
        string error
    SharedObject open_object(const string& path) except +
    void close_object(SharedObject& object)
    string open_global "npjit::load_global"(const string& path) except +


cdef extern from "array.h" namespace "npjit":
    int import_numpy() except -1
    cbool supports_dtype(int dtype)
    cbool is_plain_array(object array)
    cdef cppclass Layout:
        cbool c_order
        string classes, order
    Layout layout_of(object array) except +
    cdef cppclass ArrayGuard:
        int dtype
        cbool writeable
        int device
        vector[npjit_int64] extents
        Layout layout
    int array_dtype(object array)
    int array_ndim(object array)
    npjit_int64 array_extent(object array, int axis)
    npjit_int64 array_bytes(object array)
    char* array_data(object array)


cdef extern from "scalar.h" namespace "npjit":
    PyObject* scalar_type(int dtype)
    int same_objects "npjit::same_value"(object first, object second) except -1


cdef extern from "step.h" namespace "npjit":
    cdef enum class Fetch(unsigned char):
        argument, root, attribute, item, global_name, cell, defaults, kwdefaults
    cdef enum class Check(unsigned char):
        anything, absent, identity, equal, exact_type
        sequence, mapping, array, device_array, python_scalar, numpy_scalar
    cdef cppclass Step:
        Fetch fetch
        Check check
        char kind
        int index, dtype
        cbool indexed
        Py_ssize_t position, length
        PyObject* source
        PyObject* key
        PyObject* expected
        PyObject* keys
        ArrayGuard array
    cdef cppclass Call:
        PyObject** arguments
        Py_ssize_t positional
        PyObject* names


cdef extern from "tree.h" namespace "npjit":
    cdef enum class Branch(unsigned char):
        leaf, constant, step, tuple, list, named_tuple, applied, dict, dataclass
    cdef cppclass Tree:
        Branch branch
        int index
        PyObject* object
        PyObject* names
        vector[Tree] children


cdef extern from "driver.h" namespace "npjit":
    const int driver_function_count
    const char* const driver_function_names[]
    void set_driver_functions "npjit::set_driver"(void** functions)


cdef extern from "Python.h":
    const char* PyCapsule_GetName(object capsule) except? NULL
    void* PyCapsule_GetPointer(object capsule, const char* name) except NULL


cdef extern from "device.h" namespace "npjit":
    ctypedef PyObject* (*ArrayCreator)(PyObject*, const vector[Py_ssize_t]&, PyObject*, PyObject*)
    cdef cppclass ArrayFields:
        PyObject* pointer
        ArrayCreator create
        Py_ssize_t shape, strides, dtype, data, ptr, device_id
    void register_device "npjit::set_device_interface"(
        PyObject* type, PyObject* stream, const ArrayFields& fields
    )
    object _header "npjit::header_of"(object array)
    cbool is_device_type "npjit::is_device_array"(object array)
    cbool current_stream(void** stream) except False


cdef extern from "cublas.h" namespace "npjit":
    cdef cppclass Product:
        int letter, type, made, compute, turn_left, turn_right
        npjit_int64 m, n, k, lead_left, lead_right, lead_result
        npjit_int64 step_left, step_right, step_result, batch
    const int cublas_count
    const char** cublas_names
    void set_cublas_functions "npjit::set_cublas" (void** functions, PyObject* workspace)


cdef extern from "tape.h" namespace "npjit":
    cdef cppclass Launch:
        void* function
        unsigned grid_x, grid_y, block, shared
        PyObject* label
    cdef cppclass Work:
        Launch launch
        Product product
        int first, words
    cdef cppclass Patch:
        int word, base
        npjit_int64 offset
    cdef cppclass Flag:
        int base
        npjit_int64 offset
    cdef enum class Control(unsigned char):
        none, host, require, repeat, loop, branch
    cdef cppclass Piece:
        vector[Work] works
        Control control
        PyObject* host
        Flag flag
        vector[Flag] stops
        vector[TapeParts*] bodies
        npjit_int64 times
    cdef cppclass TapeParts "npjit::Tape":
        vector[npjit_int64] words
        vector[Patch] patches
        vector[Piece] pieces
        Piece& open()
        void settle()
    cdef enum class Ran(int):
        done, stopped, raised, no_memory
    Ran run_tape(TapeParts& tape, npjit_int64* bases, int count, void* stream)


cdef extern from "device_plan.h" namespace "npjit":
    cdef enum class Word(unsigned char):
        size, address, number
    cdef cppclass Made:
        PyObject* make
        PyObject* arguments
        vector[Py_ssize_t] extents
    cdef cppclass KeptSlots "std::array<npjit::KeptArray, 2>":
        pass
    cdef cppclass Kept:
        vector[KeptSlots] results
    cdef cppclass Instance:
        PyObject* owner
        vector[Made] results
        npjit_int64 memory, arena, counters
        TapeParts* tape
        Kept kept
    cdef cppclass DevicePlanParts "npjit::DevicePlan":
        int device
        vector[Word] words
        vector[int] bases
        PyObject* prepare
        PyObject* allocate
        PyObject* counters
        cbool keeps
        unordered_map[string, Instance*] instances
        Instance* last
    void drop_kept(Instance& instance)


cdef extern from "entry.h" namespace "npjit":
    cdef enum class Result(unsigned char):
        array, numpy_scalar, python_scalar, alias, input, device
    cdef cppclass Output:
        Result result
        char kind
        int dtype, ndim, input
        cbool writeable
        vector[int] order
    cdef cppclass Relation:
        cbool same
        int first, second
    cdef cppclass CompiledEntry "npjit::Entry":
        Py_ssize_t positional
        PyObject* names
        vector[Step] steps
        vector[int] inputs
        vector[Relation] relations
        vector[Output] outputs
        Tree tree
        Functions native
        PyObject* callable
        PyObject* fits
        DevicePlanParts* device
        npjit_int64 release_bytes
    void count_words(CompiledEntry& entry)
    cdef enum class Outcome(int):
        done, no_match, original, failed, raised
    int call_shape, memory_overlap, size_guard
    Outcome execute(const CompiledEntry& entry, const Call& call, PyObject** result, int* detail)
    Outcome probe(const CompiledEntry& entry, const Call& call, int* detail)
