struct k0_args {
  const npjit_api* api;
  const f64* mem0;
  const f64* mem1;
  f64* mem2;
  i64 s0;
  i64 s1;
};
static void k0_chunk(void* context, i64 begin, i64 end, int chunk) {
  const k0_args& a = *(const k0_args*)context;
  const npjit_api* const api = a.api;
  const f64* const mem0 = a.mem0;
  const f64* const mem1 = a.mem1;
  f64* const mem2 = a.mem2;
  i64 const s0 = a.s0;
  i64 const s1 = a.s1;
  i64 bytes = 0;
  const i64 offset3 = bytes;
  bytes += 3072;
  char* const packed = (char*)api->scratch(bytes);
  const i64 rows = s0;
  for (i64 t = begin; t < end;) {
    const i64 low1 = t / rows * 128;
    const i64 high1 = nj_size_min(s1, low1 + 128);
    const i64 stop = nj_size_min(end, (t / rows + 1) * rows);
    f64* const mem3 = (f64*)(packed + offset3) - low1;
    for (i64 x2 = 0; x2 < 3; ++x2) {
      for (i64 x1 = low1; x1 < high1; ++x1) {
        const f64 v7 = mem1[3*x1 + x2];
        mem3[x1 + 128*x2] = v7;
      }
    }
    i64 x0 = t % rows;
    for (; t < stop; ++t) {
#pragma omp simd
      for (i64 x1 = low1; x1 < high1; ++x1) {
        f64 acc4 = 0;
        {
          const i64 x2 = 0;
          const f64 v0 = mem0[3*x0 + x2];
          const f64 v1 = mem3[x1 + 128*x2];
          const f64 v2 = v0 - v1;
          const f64 v3 = v2 * v2;
          acc4 = acc4 + v3;
        }
        {
          const i64 x2 = 1;
          const f64 v0 = mem0[3*x0 + x2];
          const f64 v1 = mem3[x1 + 128*x2];
          const f64 v2 = v0 - v1;
          const f64 v3 = v2 * v2;
          acc4 = acc4 + v3;
        }
        {
          const i64 x2 = 2;
          const f64 v0 = mem0[3*x0 + x2];
          const f64 v1 = mem3[x1 + 128*x2];
          const f64 v2 = v0 - v1;
          const f64 v3 = v2 * v2;
          acc4 = acc4 + v3;
        }
        const f64 v4 = acc4;
        const f64 v5 = nj_sqrt(v4);
        mem2[s1*x0 + x1] = v5;
      }
      ++x0;
    }
  }
}
NJ_NOINLINE static void k0(const npjit_api* api, const f64* mem0, const f64* mem1, f64* mem2, i64 s0, i64 s1) {
  k0_args a = {api, mem0, mem1, mem2, s0, s1};
  const i64 n = s0;
  const i64 grain = 12;
  const i64 strips = (s1 + 127) / 128;
  if (n * strips > 0) api->parallel(k0_chunk, &a, n * strips, grain);
}

extern "C" int npjit_prepare(const i64* in, i64* out) {
  const i64 n0 = in[1];
  const i64 n2 = in[6];
  out[0] = 0;
  out[1] = n0;
  out[2] = n2;
  return 0;
}
extern "C" int npjit_run(const npjit_api* api, const i64* in, const i64* out, char* const* buffers, char* arena) {
  const i64 n0 = in[1];
  const i64 n2 = in[6];
  char* const in0 = (char*)in[0];
  char* const in1 = (char*)in[5];
  char* const out0 = buffers[0];
  k0(api, (f64*)in0, (f64*)in1, (f64*)out0, n0, n2);
  return NPJIT_OK;
}
