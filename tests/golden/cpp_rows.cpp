struct k0_args {
  const npjit_api* api;
  const f32* mem0;
  f32* mem2;
  i64 s0;
  i64 s1;
};
static void k0_chunk(void* context, i64 begin, i64 end, int chunk) {
  const k0_args& a = *(const k0_args*)context;
  const npjit_api* const api = a.api;
  const f32* const mem0 = a.mem0;
  f32* const mem2 = a.mem2;
  i64 const s1 = a.s1;
  i64 bytes = 0;
  const i64 offset1 = bytes;
  bytes += (s1 * 4 + 63) / 64 * 64;
  char* const rows = (char*)api->scratch(bytes);
  f32* const mem1 = (f32*)(rows + offset1);
  i64 x0 = begin;
  for (i64 t = begin; t < end; ++t) {
    f32 acc1 = nj_lowest<f32>();
    i32 nan1 = 0;
#pragma omp simd reduction(max:acc1) reduction(|:nan1)
    for (i64 x1 = 0; x1 < s1; ++x1) {
      const f32 v0 = mem0[s1*x0 + x1];
      acc1 = v0 > acc1 ? v0 : acc1;
      nan1 |= nj_seen<1>(v0);
    }
    const f32 v1 = nj_extreme<1>(acc1, nan1);
    nj_cascade<f32> sum6;
    for (i64 from1 = 0; from1 < s1; from1 += NJ_BLOCK(f32)) {
      const i64 to1 = nj_size_min(from1 + NJ_BLOCK(f32), s1);
      f32 acc6 = 0;
#pragma omp simd reduction(+:acc6)
      for (i64 x1 = from1; x1 < to1; ++x1) {
        const f32 v2 = mem0[s1*x0 + x1];
        const f32 v3 = v2 - v1;
        const f32 v4 = nj_exp(v3);
        mem1[x1] = v4;
        acc6 = acc6 + v4;
      }
      sum6.push(acc6);
    }
    const f32 v6 = sum6.total();
#pragma omp simd
    for (i64 x1 = 0; x1 < s1; ++x1) {
      const f32 v7 = mem1[x1];
      const f32 v8 = v7 / v6;
      mem2[s1*x0 + x1] = v8;
    }
    ++x0;
  }
}
NJ_NOINLINE static void k0(const npjit_api* api, const f32* mem0, f32* mem2, i64 s0, i64 s1) {
  k0_args a = {api, mem0, mem2, s0, s1};
  const i64 n = s0;
  const i64 grain = 1 + 32768 / nj_size_max(1, 18*s1);
  if (n > 0) api->parallel(k0_chunk, &a, n, grain);
}

extern "C" int npjit_prepare(const i64* in, i64* out) {
  const i64 n0 = in[1];
  const i64 n1 = in[2];
  out[0] = 0;
  out[1] = n0;
  out[2] = n1;
  return 0;
}
extern "C" int npjit_run(const npjit_api* api, const i64* in, const i64* out, char* const* buffers, char* arena) {
  const i64 n0 = in[1];
  const i64 n1 = in[2];
  char* const in0 = (char*)in[0];
  char* const out0 = buffers[0];
  k0(api, (f32*)in0, (f32*)out0, n0, n1);
  return NPJIT_OK;
}
