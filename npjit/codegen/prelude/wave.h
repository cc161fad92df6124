// Vectors whose lanes are eight rows, of which each one is some elements behind the one above it.

template <class T, int size = sizeof(T)>
struct nj_wave_of {
  typedef T type __attribute__((vector_size(64)));
  typedef T loose __attribute__((vector_size(64), aligned(8)));
  typedef i64 index __attribute__((vector_size(64)));
};
template <class T>
struct nj_wave_of<T, 4> {
  typedef T type __attribute__((vector_size(32)));
  typedef T loose __attribute__((vector_size(32), aligned(4)));
  typedef i32 index __attribute__((vector_size(32)));
};
template <class T>
using nj_wave = typename nj_wave_of<T>::type;

template <class T, int... k>
NJ_INLINE nj_wave<T> nj_wave_picked(nj_wave<T> a, nj_wave<T> b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, k...);
#else
  return __builtin_shuffle(a, b, typename nj_wave_of<T>::index{k...});
#endif
}

template <class T>
NJ_INLINE nj_wave<T> nj_wave_all(T x) {
  return nj_wave<T>{x, x, x, x, x, x, x, x};
}

// An element of each of the first `rows` rows; 0 in the other lanes.
template <class T>
NJ_INLINE nj_wave<T> nj_wave_at(const T* from, i64 row, int rows) {
  nj_wave<T> found = {};
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
    found[r] = from[r * row];
  return found;
}

// Where an element of each row is. The first rows are some elements further.
struct nj_wave_places {
  i64 at[8];
  inline __attribute__((always_inline)) nj_wave_places(i64 row) {
    for (int r = 0; r < 8; ++r)
      at[r] = r * row;
  }
  template <class T>
  inline __attribute__((always_inline)) nj_wave<T> load(const T* p) const {
    return nj_wave<T>{p[at[0]], p[at[1]], p[at[2]], p[at[3]],
                      p[at[4]], p[at[5]], p[at[6]], p[at[7]]};
  }
  template <class T>
  inline __attribute__((always_inline)) void store(T* p, nj_wave<T> v) const {
    p[at[0]] = v[0], p[at[1]] = v[1], p[at[2]] = v[2], p[at[3]] = v[3];
    p[at[4]] = v[4], p[at[5]] = v[5], p[at[6]] = v[6], p[at[7]] = v[7];
  }
};

// The vector with x for a row.
template <class T>
NJ_INLINE nj_wave<T> nj_wave_with(nj_wave<T> v, int row, T x) {
  v[row] = x;
  return v;
}

// The results of comparisons, for a choice between values of the size of T.
template <class T, class M>
NJ_INLINE typename nj_wave_of<T>::index nj_wave_mask(M m) {
  return __builtin_convertvector(m, typename nj_wave_of<T>::index);
}

NJ_INLINE nj_wave<f64> nj_absolute(nj_wave<f64> x) {
  return (nj_wave<f64>)((nj_wave<i64>)x & 0x7fffffffffffffffll);
}
NJ_INLINE nj_wave<f32> nj_absolute(nj_wave<f32> x) {
  return (nj_wave<f32>)((nj_wave<i32>)x & 0x7fffffff);
}

// Each row's value for the row below it, and x for the first one.
template <class T>
NJ_INLINE nj_wave<T> nj_wave_down(nj_wave<T> v, T x) {
  return nj_wave_picked<T, 8, 0, 1, 2, 3, 4, 5, 6>(v, nj_wave_all<T>(x));
}

// The rows of pairs, fours and eights of columns.
template <class T>
NJ_INLINE void nj_wave_pairs(nj_wave<T>& a, nj_wave<T>& b) {
  const nj_wave<T> c = nj_wave_picked<T, 0, 8, 2, 10, 4, 12, 6, 14>(a, b);
  b = nj_wave_picked<T, 1, 9, 3, 11, 5, 13, 7, 15>(a, b);
  a = c;
}

template <class T>
NJ_INLINE void nj_wave_fours(nj_wave<T>& a, nj_wave<T>& b) {
  const nj_wave<T> c = nj_wave_picked<T, 0, 1, 8, 9, 4, 5, 12, 13>(a, b);
  b = nj_wave_picked<T, 2, 3, 10, 11, 6, 7, 14, 15>(a, b);
  a = c;
}

template <class T>
NJ_INLINE void nj_wave_eights(nj_wave<T>& a, nj_wave<T>& b) {
  const nj_wave<T> c = nj_wave_picked<T, 0, 1, 2, 3, 8, 9, 10, 11>(a, b);
  b = nj_wave_picked<T, 4, 5, 6, 7, 12, 13, 14, 15>(a, b);
  a = c;
}

// Eight vectors, whose rows and columns change places.
template <class T>
struct nj_wave_square {
  nj_wave<T> a, b, c, d, e, f, g, h;
  inline __attribute__((always_inline)) void turn() {
    nj_wave_pairs<T>(a, b), nj_wave_pairs<T>(c, d), nj_wave_pairs<T>(e, f), nj_wave_pairs<T>(g, h);
    nj_wave_fours<T>(a, c), nj_wave_fours<T>(b, d), nj_wave_fours<T>(e, g), nj_wave_fours<T>(f, h);
    nj_wave_eights<T>(a, e), nj_wave_eights<T>(b, f);
    nj_wave_eights<T>(c, g), nj_wave_eights<T>(d, h);
  }
};

// Eight elements of each row, as vectors of one element each; `step`, 1 or -1, leads to a row's next
// element.
template <int step, class T>
NJ_INLINE void nj_wave_load(nj_wave<T>* v, const T* from, i64 row) {
  typedef typename nj_wave_of<T>::loose loose;
  const T* const p = step < 0 ? from - 7 : from;
  const auto at = [=](int r) { return (nj_wave<T>)*(const loose*)(p + r * row); };
  nj_wave_square<T> s = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  s.turn();
  nj_wave<T>* const to = step < 0 ? v + 7 : v;
  to[0] = s.a, to[step] = s.b, to[2 * step] = s.c, to[3 * step] = s.d;
  to[4 * step] = s.e, to[5 * step] = s.f, to[6 * step] = s.g, to[7 * step] = s.h;
}

template <int step, class T>
NJ_INLINE void nj_wave_store(const nj_wave<T>* v, T* to, i64 row) {
  typedef typename nj_wave_of<T>::loose loose;
  const nj_wave<T>* const p = step < 0 ? v + 7 : v;
  nj_wave_square<T> s = {p[0],        p[step],     p[2 * step], p[3 * step],
                         p[4 * step], p[5 * step], p[6 * step], p[7 * step]};
  s.turn();
  T* const q = step < 0 ? to - 7 : to;
  const auto put = [=](int r, nj_wave<T> x) { *(loose*)(q + r * row) = x; };
  put(0, s.a), put(1, s.b), put(2, s.c), put(3, s.d);
  put(4, s.e), put(5, s.f), put(6, s.g), put(7, s.h);
}
