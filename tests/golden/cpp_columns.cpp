struct k0_args {
  const npjit_api* api;
  const f64* mem0;
  f64* mem1;
  i64 s0;
  i64 s1;
};
struct k0_lanes {
  f64* acc1;
  f64* total1;
  f64* lane4;
  i64 width;
};
static void k0_p0(const k0_args& a, const k0_lanes& seen, const k0_lanes& own, i64 from, i64 to, i64 begin, i64 end) {
  const f64* const mem0 = a.mem0;
  i64 const s1 = a.s1;
  f64* const acc1 = own.acc1;
  f64* const total1 = own.total1;
#pragma omp simd
  for (i64 lane = 0; lane < to - from; ++lane) {
    const i64 x1 = from + lane;
    acc1[lane] = 0;
    total1[lane] = 0;
  }
  i64 count = 0;
  i64 x0 = begin;
  for (i64 t = begin; t < end; ++t) {
#pragma omp simd
    for (i64 lane = 0; lane < to - from; ++lane) {
      const i64 x1 = from + lane;
      const f64 v0 = mem0[s1*x0 + x1];
      acc1[lane] = acc1[lane] + v0;
    }
    if (++count == 128) {
      count = 0;
#pragma omp simd
      for (i64 lane = 0; lane < to - from; ++lane) {
        const i64 x1 = from + lane;
        total1[lane] += acc1[lane];
        acc1[lane] = 0;
      }
    }
    ++x0;
  }
#pragma omp simd
  for (i64 lane = 0; lane < to - from; ++lane) {
    const i64 x1 = from + lane;
    total1[lane] += acc1[lane];
  }
}
static void k0_p1(const k0_args& a, const k0_lanes& seen, const k0_lanes& own, i64 from, i64 to, i64 begin, i64 end) {
  i64 const s0 = a.s0;
  f64* const total1 = seen.total1;
  f64* const lane4 = own.lane4;
  const i64 v2 = nj_cast<i64>(i64(s0));
  const f64 v3 = nj_cast<f64>(v2);
#pragma omp simd
  for (i64 lane = 0; lane < to - from; ++lane) {
    const i64 x1 = from + lane;
    const f64 v1 = total1[lane];
    const f64 v4 = v1 / v3;
    lane4[lane] = v4;
  }
}
static void k0_p2(const k0_args& a, const k0_lanes& seen, const k0_lanes& own, i64 from, i64 to, i64 begin, i64 end) {
  const f64* const mem0 = a.mem0;
  f64* const mem1 = a.mem1;
  i64 const s1 = a.s1;
  f64* const lane4 = seen.lane4;
  i64 x0 = begin;
  for (i64 t = begin; t < end; ++t) {
#pragma omp simd
    for (i64 lane = 0; lane < to - from; ++lane) {
      const i64 x1 = from + lane;
      const f64 v4 = lane4[lane];
      const f64 v5 = mem0[s1*x0 + x1];
      const f64 v6 = v5 - v4;
      mem1[s1*x0 + x1] = v6;
    }
    ++x0;
  }
}
static i64 k0_carve(const k0_args& a, k0_lanes& w, char* at, i64 n) {
  char* const start = at;
  w.width = (n + 63) / 64 * 64;
  w.acc1 = (f64*)at;
  at += w.width * sizeof(f64);
  w.total1 = (f64*)at;
  at += w.width * sizeof(f64);
  w.lane4 = (f64*)at;
  at += w.width * sizeof(f64);
  return at - start;
}
static void k0_chunk(void* context, i64 begin, i64 end, int chunk) {
  const k0_args& a = *(const k0_args*)context;
  const npjit_api* const api = a.api;
  i64 const s0 = a.s0;
  const i64 most = nj_size_min(end - begin, nj_size_max(512, nj_size_min(4096, 524288 / nj_size_max(1, s0) / 64 * 64)));
  k0_lanes w;
  k0_carve(a, w, (char*)api->scratch(k0_carve(a, w, nullptr, most)), most);
  for (i64 from = begin; from < end; from += most) {
    const i64 to = nj_size_min(from + most, end);
    k0_p0(a, w, w, from, to, 0, s0);
    k0_p1(a, w, w, from, to, 0, 1);
    k0_p2(a, w, w, from, to, 0, s0);
  }
}
struct k0_shared {
  const k0_args* a;
  // the caller's arrays, then one set for each chunk
  const k0_lanes* lanes;
  i64 n;
};
static void k0_shared0(void* context, i64 begin, i64 end, int chunk) {
  const k0_shared& s = *(const k0_shared*)context;
  k0_p0(*s.a, s.lanes[0], s.lanes[1 + chunk], 0, s.n, begin, end);
}
static __attribute__((cold)) void k0_join0(const k0_lanes* lanes, int chunks, i64 n) {
  for (i64 j = 0; j < n; ++j) {
    lanes[0].total1[j] = 0;
    for (int c = 1; c <= chunks; ++c) {
      lanes[0].total1[j] = lanes[0].total1[j] + lanes[c].total1[j];
    }
  }
}
static void k0_shared2(void* context, i64 begin, i64 end, int chunk) {
  const k0_shared& s = *(const k0_shared*)context;
  k0_p2(*s.a, s.lanes[0], s.lanes[0], 0, s.n, begin, end);
}
NJ_NOINLINE static void k0(const npjit_api* api, const f64* mem0, f64* mem1, i64 s0, i64 s1) {
  k0_args a = {api, mem0, mem1, s0, s1};
  const i64 n = s1;
  const i64 grain = 1 + 32768 / nj_size_max(1, 6*s0 + 3);
  const int threads = api->chunks(1ll << 40, 1);
  if (n > grain && n <= 4096 && api->chunks(n, 512) < threads && threads <= 256 && s0 > n && s0 > n) {
    k0_lanes lanes[257];
    const i64 bytes = k0_carve(a, lanes[0], nullptr, n);
    char* const memory = (char*)api->scratch(bytes * (threads + 1));
    for (int c = 0; c <= threads; ++c) {
      k0_carve(a, lanes[c], memory + c * bytes, n);
    }
    k0_shared s = {&a, lanes, n};
    {
      const i64 steps = s0;
      const i64 each = 1 + 16384 / n;
      api->parallel(k0_shared0, &s, steps, each);
      k0_join0(lanes, api->chunks(steps, each), n);
    }
    k0_p1(a, lanes[0], lanes[0], 0, n, 0, 1);
    {
      const i64 steps = s0;
      const i64 each = 1 + 8192 / n;
      api->parallel(k0_shared2, &s, steps, each);
    }
    return;
  }
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
  k0(api, (f64*)in0, (f64*)out0, n0, n1);
  return NPJIT_OK;
}
