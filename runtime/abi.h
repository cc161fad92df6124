// The contract between generated code and the runtime. No standard headers: this text is pasted in front of
// every generated translation unit, and included by the runtime itself.
//
// A compiled graph exports two functions:
//
//   int npjit_prepare(const int64* in, int64* out)
//       Reads sizes from `in`, returns 0 when every recorded size guard holds (else 1), and fills `out`:
//       word 0 is the arena's size in bytes, then, output by output, what its OutputSpec says (see below).
//   int npjit_run(const npjit_api* api, const int64* in, const int64* out, char* const* buffers, char* arena)
//       Runs the plan. `buffers[k]` is the memory of fresh output k (null for the others). 0, or the number of
//       the failed check (>= 1), or NPJIT_INTERRUPTED or NPJIT_RAISED, a Python exception then being set.
//
// `in` holds, input by input:
//   array         data pointer, then ndim extents, then ndim strides counted in elements
//   scalar        one word: int64/uint64 value, or the bits of a double (float16/32 scalars widened to double,
//                 bool as 0 or 1); complex scalars take two words: real bits, imaginary bits
// `out` holds, after the arena size, for each output in order:
//   fresh         ndim extents                              (the runtime allocates, C order of the permuted axes)
//   alias         offset in elements, ndim extents, ndim strides in elements   (a view of an input's memory)
//   other kinds   nothing
#ifndef NPJIT_ABI_H
#define NPJIT_ABI_H
typedef long long npjit_int64;

enum { NPJIT_OK = 0, NPJIT_INTERRUPTED = -1, NPJIT_RAISED = -2 };

// An array in memory; dtype is NumPy's number (-1: bfloat16, whose number the runtime knows), strides count elements.
struct npjit_array {
  char* data;
  int dtype;
  int ndim;
  const npjit_int64* shape;
  const npjit_int64* strides;
};

// Runs fn(context, begin, end) over [0, n) in static chunks of at least `grain` items each (a few a thread), in the
// calling thread alone when n <= grain or the workers are busy. Chunk c of an n-item range always has the same bounds
// for the same thread count, so results repeat. `chunk` numbers the chunk (0 .. npjit_api::chunks - 1).
typedef void (*npjit_body)(void* context, npjit_int64 begin, npjit_int64 end, int chunk);

struct npjit_api {
  void (*parallel)(npjit_body fn, void* context, npjit_int64 n, npjit_int64 grain);
  // how many chunks `parallel` would use for this n and grain (partial results of a split reduction need the number)
  int (*chunks)(npjit_int64 n, npjit_int64 grain);
  // polled between plan steps: nonzero when Ctrl-C is pending
  int (*interrupted)();
  // CBLAS of the OpenBLAS that NumPy has loaded (64-bit sizes), row-major order; null where none was found.
  // order: dgemm, sgemm, zgemm, cgemm, dgemv, sgemv, zgemv, cgemv, dsyrk, ssyrk
  void* blas[10];
  // scratch for a kernel's row-local values: thread-local, grows, 64-byte aligned, valid until the kernel returns
  void* (*scratch)(npjit_int64 bytes);
  // has Python compute what `spec` names, from the first `arguments` arrays into the `results` behind them. An error of
  // Python's gives `check` (>= 1) and is forgotten, so that the call runs again as NumPy; NPJIT_RAISED where check is 0
  int (*host)(const char* spec, const npjit_array* arrays, int arguments, int results, int check);
};
#endif
