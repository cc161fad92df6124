struct k0_part0 {
  f64 acc1;
  f64 acc2;
  i64 at2;
};
struct k0_args {
  const npjit_api* api;
  const f64* mem0;
  f64* mem1;
  i64* mem2;
  i64 s0;
  i64 s1;
  k0_part0* parts0;
};
static void k0_p0(void* context, i64 begin, i64 end, int chunk) {
  const k0_args& a = *(const k0_args*)context;
  const f64* const mem0 = a.mem0;
  i64 const s1 = a.s1;
  nj_cascade<f64> sum1;
  nj_argument<f64, 1> acc2;
  f64 block2[4 * NJ_BLOCK(f64)];
  i64 rest = begin;
  i64 low1 = rest % s1;
  rest /= s1;
  i64 x0 = rest;
  for (i64 t = begin; t < end;) {
    const i64 high1 = nj_size_min(s1, low1 + end - t);
    t += high1 - low1;
    for (i64 from1 = low1; from1 < high1; from1 += 16 * NJ_STRIP(f64)) {
      const i64 to1 = nj_size_min(from1 + 16 * NJ_STRIP(f64), high1);
      f64 acc1 = 0;
      f64 acc1_lanes[NJ_STRIP(f64)];
#pragma omp simd
      for (i64 lane = 0; lane < NJ_STRIP(f64); ++lane) { acc1_lanes[lane] = 0; }
      const auto step = [&](i64 x1, i64 lane) __attribute__((always_inline)) {
        f64& acc1 = acc1_lanes[lane];
        const f64 v0 = mem0[s1*x0 + x1];
        acc1 = acc1 + v0;
        block2[x1 - from1] = v0;
      };
      i64 at1 = from1;
      for (; at1 + NJ_STRIP(f64) <= to1; at1 += NJ_STRIP(f64)) {
        {
          const i64 x1 = at1;
          nj_ahead<NJ_STRIP(f64)>(&mem0[s1*x0 + x1], 16384, high1 - NJ_STRIP(f64) - at1);
        }
#pragma omp simd
        for (i64 lane = 0; lane < NJ_STRIP(f64); ++lane) { step(at1 + lane, lane); }
      }
#pragma omp simd
      for (i64 lane = 0; lane < to1 - at1; ++lane) { step(at1 + lane, lane); }
      acc1 += nj_lanes_total(acc1_lanes);
      sum1.push(acc1);
      acc2.push(block2, to1 - from1, (x0) * s1 + from1);
    }
    low1 = 0;
    ++x0;
  }
  a.parts0[chunk] = {
    sum1.total(),
    acc2.best,
    acc2.at,
  };
}
NJ_NOINLINE static void k0(const npjit_api* api, const f64* mem0, f64* mem1, i64* mem2, i64 s0, i64 s1) {
  k0_args a = {api, mem0, mem1, mem2, s0, s1};
  f64 acc1 = 0;
  f64 acc2 = nj_lowest<f64>();
  i64 at2 = 0;
  {
    const i64 n = s0*s1;
    const i64 grain = 16384;
    k0_part0 parts[256];
    a.parts0 = parts;
    const i64 least = nj_size_max(grain, n / 256 + 1);
    const int chunks = n > least ? api->chunks(n, least) : n > 0;
    if (n > 0) api->parallel(k0_p0, &a, n, least);
    for (int c = 0; c < chunks; ++c) {
      acc1 = acc1 + parts[c].acc1;
      const b1 better2 = !(parts[c].acc2 <= acc2) & (acc2 == acc2);
      acc2 = better2 ? parts[c].acc2 : acc2;
      at2 = better2 ? parts[c].at2 : at2;
    }
  }
  const f64 v1 = acc1;
  const i64 v2 = at2;
  const i64 v3 = nj_cast<i64>(i64(s0*s1));
  const f64 v4 = nj_cast<f64>(v3);
  const f64 v5 = v1 / v4;
  mem1[0] = v5;
  mem2[0] = v2;
}

extern "C" int npjit_prepare(const i64* in, i64* out) {
  out[0] = 0;
  return 0;
}
extern "C" int npjit_run(const npjit_api* api, const i64* in, const i64* out, char* const* buffers, char* arena) {
  const i64 n0 = in[1];
  const i64 n1 = in[2];
  char* const in0 = (char*)in[0];
  char* const out0 = buffers[0];
  char* const out1 = buffers[1];
  k0(api, (f64*)in0, (f64*)out0, (i64*)out1, n0, n1);
  return NPJIT_OK;
}
