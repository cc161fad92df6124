// The names of NumPy's types.

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef bool b1;

// A call that is left in a loop keeps it scalar, however large the function.
#define NJ_INLINE static inline __attribute__((always_inline))
#define NJ_MEMBER inline __attribute__((always_inline))
#define NJ_NOINLINE __attribute__((noinline))
