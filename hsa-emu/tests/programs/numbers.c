/* Arithmetic of all widths, compared with the host's: see tests/clang.rs. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int i32;
typedef long i64;

#ifdef __AMDGCN__
#define KERNEL __attribute__((device_kernel, visibility("protected"))) void
#define LANE __builtin_amdgcn_workitem_id_x()
#else
/* On the host, one call does what one work-item does. */
#define KERNEL void
u32 lane;
#define LANE lane
#endif

/* in: pairs of 64-bit words; out: 32 words for each work-item. */
KERNEL integers(const u64 *in, u64 *out) {
  u32 n = LANE;
  u64 a = in[2 * n], b = in[2 * n + 1];
  u32 x = a, y = b;
  u64 *o = out + 32 * n;
  o[0] = a + b;
  o[1] = a - b;
  o[2] = a * b;
  o[3] = b ? a / b : 1;
  o[4] = b ? a % b : 2;
  o[5] = b && !(a == 1ul << 63 && b == -1ul) ? (u64)((i64)a / (i64)b) : 3;
  o[6] = y ? x / y : 4;
  o[7] = y ? x % y : 5;
  o[8] = y && y != -1u ? (u32)((i32)x % (i32)y) : 6;
  o[9] = a << (b & 63);
  o[10] = a >> (b & 63);
  o[11] = (i64)a >> (b & 63);
  o[12] = x << (y & 31);
  o[13] = (u32)((i32)x >> (y & 31));
  o[14] = __builtin_popcountl(a) + __builtin_popcount(y);
  o[15] = a ? __builtin_clzl(a) : 64;
  o[16] = a ? __builtin_ctzl(a) : 64;
  o[17] = (u64)((unsigned __int128)a * b >> 64);
  o[18] = (u64)((__int128)(i64)a * (i64)b >> 64);
  o[19] = __builtin_bswap64(a) ^ __builtin_bswap32(y);
  o[20] = (u16)((u16)a * (u16)b + (u16)(a >> 16));
  o[21] = (u8)((u8)a + (u8)b) | (u32)(u8)((u8)a - (u8)b) << 8;
  o[22] = (u64)(i64)(signed char)a + (u64)(i64)(short)b;
  o[23] = (i64)a < (i64)b ? a : b;
  o[24] = a > b ? a : b;
  o[25] = __builtin_bitreverse32(x) + __builtin_rotateleft32(x, y);
  o[26] = (u16)(((u16)a >> 3) | ((u16)b << 5));
  o[27] = (x & 0xff00ff) * 3 + (y >> 7 & 0x3fff);
  o[28] = (short)a < (short)b ? (u16)a : (u16)b;
  o[29] = (u16)a / ((u16)b | 1) + (u16)a % ((u16)b | 1);
  o[30] = (u64)x * y + a;
  o[31] = (u64)((i64)(i32)x * (i32)y) + b;
}

static u32 bits(float f) {
  u32 n;
  __builtin_memcpy(&n, &f, 4);
  return n;
}

static u64 bits64(double f) {
  u64 n;
  __builtin_memcpy(&n, &f, 8);
  return n;
}

static float real(u32 n) {
  float f;
  __builtin_memcpy(&f, &n, 4);
  return f;
}

static double real64(u64 n) {
  double f;
  __builtin_memcpy(&f, &n, 8);
  return f;
}

#pragma STDC FP_CONTRACT OFF
KERNEL floats(const u64 *in, u64 *out) {
  u32 n = LANE;
  u64 a = in[2 * n], b = in[2 * n + 1];
  float x = real(a), y = real(b);
  double p = real64(a), q = real64(b);
  u64 *o = out + 32 * n;
  o[0] = bits(x + y);
  o[1] = bits(x - y);
  o[2] = bits(x * y);
  o[3] = bits(x / y);
  o[4] = bits64(p + q);
  o[5] = bits64(p - q);
  o[6] = bits64(p * q);
  o[7] = bits64(p / q);
  o[8] = bits(__builtin_fmaf(x, y, x));
  o[9] = bits64(__builtin_fma(p, q, p));
  o[10] = bits((float)p);
  o[11] = bits64((double)x);
  o[12] = bits((float)a);
  o[13] = bits64((double)a);
  o[14] = bits((float)(i64)a);
  o[15] = bits64((double)(i64)a);
  o[16] = bits((float)(i32)a) + bits((float)(u32)b);
  o[17] = bits64((double)(i32)a) + bits64((double)(u32)b);
  o[18] = bits(__builtin_floorf(x));
  o[19] = bits64(__builtin_trunc(p));
  o[20] = bits64(__builtin_ceil(p));
  o[21] = bits(__builtin_rintf(x));
  o[22] = (x < y) | (x <= y) << 1 | (x == y) << 2 | (x != y) << 3 | (x > y) << 4 | (x >= y) << 5;
  o[23] = (p < q) | (p <= q) << 1 | (p == q) << 2 | (p != q) << 3 | (p > q) << 4 | (p >= q) << 5;
  o[24] = bits(__builtin_sqrtf(__builtin_fabsf(x)));
  o[25] = bits64(__builtin_sqrt(__builtin_fabs(p)));
  o[26] = __builtin_isnan(x) | __builtin_isinf(y) << 1 | __builtin_isfinite(p) << 2;
  o[27] = bits(-x) ^ bits(__builtin_copysignf(x, y));
  o[28] = bits((float)(_Float16)x);
  o[29] = bits64(__builtin_rint(p)) ^ bits64(__builtin_floor(q));
  o[30] = x >= -2147483648.0f && x < 2147483648.0f ? (u32)(i32)x : 7;
  o[31] = p >= 0 && p < 18446744073709551616.0 ? (u64)p : 8;
}

/* Loads and stores of bytes, shorts and words at unaligned addresses. */
KERNEL moves(const u8 *in, u64 *out) {
  u32 n = LANE;
  const u8 *at = in + n;
  u64 *o = out + 32 * n;
  u64 w;
  u32 d;
  u16 s;
  __builtin_memcpy(&w, at + 1, 8);
  __builtin_memcpy(&d, at + 3, 4);
  __builtin_memcpy(&s, at + 5, 2);
  o[0] = w;
  o[1] = d;
  o[2] = s;
  o[3] = (u64)(i64)(short)s;
  o[4] = (u64)(i64)(signed char)at[2];
  u8 local[32];
  for (int i = 0; i < 32; ++i)
    local[(i * 7 + n) & 31] = at[i];
  __builtin_memcpy(&w, local + (n & 7), 8);
  o[5] = w;
  u8 *bytes = (u8 *)(o + 6);
  for (int i = 0; i < 8; ++i)
    bytes[7 - i] = at[i];
  o[7] = 0;
  __builtin_memcpy(bytes + 9, &w, 4);
}
