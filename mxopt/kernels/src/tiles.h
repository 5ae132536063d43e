// Matrix products for one thread by the tiles of Intel's AMX, which multiply bfloat16 and add up in
// float32. Factors are rounded to bfloat16, or stand for three: a float32 is the sum of three bfloat16
// of eight bits each, so a product of two is that of nine pairs of parts. The three that are less than
// 2^-24 of it are left out (Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence
// Datatype For Higher-Precision Computations", 2019). With three parts an infinite factor gives NaN.
#ifndef MXOPT_TILES_H_
#define MXOPT_TILES_H_

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512BF16__)
#define MXOPT_TILES

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "matrix.h"
#include "pairs.h"

namespace mxopt {

constexpr long kTileSide = 16;  // rows of a tile, each of so many pairs of bfloat16
constexpr long kTileDeep = 2 * kTileSide;

// 16 lanes, which are rows or columns of a matrix, of 32 elements that a product adds up over.
struct alignas(64) Tile {
  uint32_t pairs[kTileSide][kTileSide];
};

// The intrinsics of g++ take numbers of tiles as they are written only.
template <int tile>
inline void tile_load(const void* from, long pitch) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(pitch), "i"(tile) : "memory");
}

template <int tile>
inline void tile_store(void* to, long pitch) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(pitch), "i"(tile) : "memory");
}

template <int tile>
inline void tile_clear() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}

template <int sums, int left, int right>
inline void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
}

// Sets the shape of all tiles, until it is deleted.
class TileShapes {
 public:
  TileShapes() {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, unused[14] = {};
      uint16_t bytes[16] = {};
      uint8_t rows[16] = {};
    } shapes;
    for (int tile = 0; tile < 8; ++tile) shapes.bytes[tile] = 64, shapes.rows[tile] = kTileSide;
    asm volatile("ldtilecfg %0" ::"m"(shapes));
  }
  ~TileShapes() { asm volatile("tilerelease"); }
};

// Takes the next bfloat16 of each number, in the upper half of its bits, and leaves the rest.
inline __m512i next_part(__m512& x, bool last) {
  const __m512i upper = _mm512_set1_epi32(0xffff0000);
  if (last) return _mm512_and_si512((__m512i)x, upper);  // what is left has eight bits
  const __m512i rounded = _mm512_add_epi32((__m512i)x, _mm512_set1_epi32(0x8000));
  const __m512i part = _mm512_and_si512(rounded, upper);
  x = _mm512_sub_ps(x, (__m512)part);
  return part;
}

// Splits numbers into `parts` bfloat16 each, the largest first: to[0], to[step] and so on get the
// pairs of an even number and an odd one.
template <int parts>
inline void split_pairs(__m512 even, __m512 odd, uint32_t* to, long step) {
  if (parts == 1) {
    _mm512_store_si512(to, rounded_pairs(even, odd));
    return;
  }
#pragma GCC unroll 3
  for (int n = 0; n < parts; ++n) {
    const __m512i low = next_part(even, n + 1 == parts), high = next_part(odd, n + 1 == parts);
    _mm512_store_si512(to + n * step, _mm512_or_si512(high, _mm512_srli_epi32(low, 16)));
  }
}

// The same of consecutive numbers: 16 in `near`, 16 in `far`.
template <int parts>
inline void split_row(__m512 near, __m512 far, uint32_t* to, long step) {
  if (parts == 1) {
    _mm512_store_si512(to, (__m512i)_mm512_cvtne2ps_pbh(far, near));
    return;
  }
  alignas(64) static const uint16_t kUpper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                  23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                  45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  const __m512i upper = _mm512_load_si512(kUpper);
#pragma GCC unroll 3
  for (int n = 0; n < parts; ++n) {
    const __m512i low = next_part(near, n + 1 == parts), high = next_part(far, n + 1 == parts);
    _mm512_store_si512(to + n * step, _mm512_permutex2var_epi16(low, upper, high));
  }
}

// Packs up to 16 lanes of up to 32 elements into `parts` tiles, filled up with zeros. Element (lane,
// k) is from.data[lane * from.rows + k * from.columns], one of which is 1. A row of a tile is a lane if
// `by_lane`, else a pair.
template <int parts>
inline void pack(long lanes, long deep, Strided from, bool by_lane, Tile* to) {
  constexpr long step = sizeof(Tile) / 4;
  const bool lines = from.columns == 1;
  if (lines) {
    const __mmask16 near = first_lanes(deep), far = first_lanes(deep - kTileSide);
    for (long lane = 0; lane < kTileSide; ++lane) {
      const float* row = from.data + lane * from.rows;
      const bool real = lane < lanes;
      split_row<parts>(_mm512_maskz_loadu_ps(real ? near : 0, row),
                       _mm512_maskz_loadu_ps(real ? far : 0, row + kTileSide), to->pairs[lane], step);
    }
  } else {
    const __mmask16 mask = first_lanes(lanes);
    for (long pair = 0; pair < kTileSide; ++pair) {
      const float* row = from.data + 2 * pair * from.columns;
      split_pairs<parts>(_mm512_maskz_loadu_ps(2 * pair < deep ? mask : 0, row),
                         _mm512_maskz_loadu_ps(2 * pair + 1 < deep ? mask : 0, row + from.columns),
                         to->pairs[pair], step);
    }
  }
  if (lines != by_lane)
    for (int n = 0; n < parts; ++n) {
      Vector square[kTileSide];
#pragma GCC unroll 16
      for (int row = 0; row < kTileSide; ++row)
        square[row] = load(reinterpret_cast<float*>(to[n].pairs[row]));
      transpose(square);
#pragma GCC unroll 16
      for (int row = 0; row < kTileSide; ++row)
        store(reinterpret_cast<float*>(to[n].pairs[row]), square[row]);
    }
}

// The right factor of products, as tiles of its columns: (groups of 16 columns, blocks of 32 rows,
// parts).
template <int parts>
class TiledRight {
 public:
  // How many columns to take at once, so that L2 holds them: some 800 KB of three parts.
  static long at_once(long depth) { return depth <= 256 ? 512 : 256; }
  // All rows, since a product adds the parts of these up in tiles.
  static constexpr long kDeepAtOnce = std::numeric_limits<long>::max();

  // Takes a matrix whose element (k, column) is from.data[column * from.rows + k * from.columns]:
  // some rows of all columns after the other, since each line of it may be in a page of its own.
  void take(long depth, long columns, Strided from) {
    depth_ = depth, columns_ = columns;
    const size_t count = groups() * group_tiles();
    if (tiles_.size() < count) tiles_.resize(count);
    for (long k = 0; k < depth; k += kTileDeep)
      for (long group = 0; group < groups(); ++group) {
        const long column = group * kTileSide;
        pack<parts>(columns - column, depth - k,
                    {from.data + column * from.rows + k * from.columns, from.rows, from.columns},
                    false, tiles_.data() + group * group_tiles() + k / kTileDeep * parts);
      }
  }

  long groups() const { return (columns_ + kTileSide - 1) / kTileSide; }
  long group_tiles() const { return (depth_ + kTileDeep - 1) / kTileDeep * parts; }
  const Tile* at(long group, long k) const {
    return tiles_.data() + group * group_tiles() + k / kTileDeep * parts;
  }

 private:
  std::vector<Tile> tiles_;
  long depth_ = 0, columns_ = 0;
};

// Multiplies one part of R groups of rows, in tiles 4 and 5, by one of C groups of columns, in 6 and 7.
template <int R, int C>
inline void multiply_parts() {
  tile_multiply<0, 4, 6>();
  if (C > 1) tile_multiply<1, 4, 7>();
  if (R > 1) tile_multiply<2, 5, 6>();
  if (R > 1 && C > 1) tile_multiply<3, 5, 7>();
}

template <int R>
inline void load_left(const Tile* tiles, long apart) {
  tile_load<4>(tiles, 64);
  if (R > 1) tile_load<5>(tiles + apart, 64);
}

template <int C>
inline void load_right(const Tile* tiles, long apart) {
  tile_load<6>(tiles, 64);
  if (C > 1) tile_load<7>(tiles + apart, 64);
}

// Writes the product of R groups of rows, `a_apart` tiles apart, and C groups of columns to four tiles.
template <int parts, int R, int C>
inline void tile_product(long blocks, const Tile* a, long a_apart, const Tile* b, long b_apart,
                         Tile* sums) {
  tile_clear<0>(), tile_clear<1>(), tile_clear<2>(), tile_clear<3>();
  for (long block = 0; block < blocks; ++block, a += parts, b += parts) {
    load_left<R>(a, a_apart);
    load_right<C>(b, b_apart);
    multiply_parts<R, C>();
    if (parts == 1) continue;
    load_right<C>(b + 2, b_apart);
    multiply_parts<R, C>();
    load_right<C>(b + 1, b_apart);
    multiply_parts<R, C>();
    load_left<R>(a + 1, a_apart);
    multiply_parts<R, C>();
    load_right<C>(b, b_apart);
    multiply_parts<R, C>();
    load_left<R>(a + 2, a_apart);
    multiply_parts<R, C>();
  }
  tile_store<0>(sums, 64);
  if (C > 1) tile_store<1>(sums + 1, 64);
  if (R > 1) tile_store<2>(sums + 2, 64);
  if (R > 1 && C > 1) tile_store<3>(sums + 3, 64);
}

// Writes up to 32 rows and columns of sums to c, or adds them to what `start` has, with rows `pitch`
// apart; with a pitch of 0 the rows start from the same.
inline void give_sums(const Tile* sums, long rows, long columns, const float* start, long pitch,
                      float* c, long ldc) {
  for (long row = 0; row < rows; ++row)
    for (long group = 0; group * kTileSide < columns; ++group) {
      const __mmask16 mask = first_lanes(columns - group * kTileSide);
      __m512 sum = _mm512_load_ps(sums[row / kTileSide * 2 + group].pairs[row % kTileSide]);
      const long at = group * kTileSide;
      if (start)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, start + row * pitch + at));
      _mm512_mask_storeu_ps(c + row * ldc + at, mask, sum);
    }
}

// c (rows, columns) = a (rows, depth) b (depth, columns), plus `start` if it is given: as give_sums
// reads it, a bias with a pitch of 0, or c itself with ldc.
template <int parts>
inline void product(long rows, long columns, long depth, Strided a, const TiledRight<parts>& b,
                    const float* start, long pitch, float* c, long ldc) {
  constexpr long kSome = 2 * kTileSide;  // rows, and columns, of four tiles
  constexpr long kAtOnce = 512;          // elements of a row of a, whose tiles L2 holds beside b's
  constexpr long kGroup = kAtOnce / kTileDeep * parts;
  static thread_local std::vector<Tile> left(2 * kGroup);
  const TileShapes shapes;
  long k = 0;
  do {
    const long deep = std::min(kAtOnce, depth - k), blocks = (deep + kTileDeep - 1) / kTileDeep;
    for (long row = 0; row < rows; row += kSome) {
      const long some = std::min(kSome, rows - row);
      for (long n = 0; n < blocks; ++n)
        for (long down = 0; down < some; down += kTileSide)
          pack<parts>(some - down, deep - n * kTileDeep,
                      {a.data + (row + down) * a.rows + (k + n * kTileDeep) * a.columns, a.rows,
                       a.columns},
                      true, left.data() + down / kTileSide * kGroup + n * parts);
      for (long column = 0; column < columns; column += kSome) {
        const bool tall = some > kTileSide, wide = columns - column > kTileSide;
        const auto compute = tall ? (wide ? tile_product<parts, 2, 2> : tile_product<parts, 2, 1>)
                                  : (wide ? tile_product<parts, 1, 2> : tile_product<parts, 1, 1>);
        Tile sums[4];
        compute(blocks, left.data(), kGroup, b.at(column / kTileSide, k), b.group_tiles(), sums);
        float* const to = c + row * ldc + column;
        const float* from = k > 0 ? to : start ? start + row * pitch + column : nullptr;
        give_sums(sums, some, std::min(kSome, columns - column), from, k > 0 ? ldc : pitch, to, ldc);
      }
    }
    k += kAtOnce;
  } while (k < depth);
}

}  // namespace mxopt

#endif  // AMX

#endif  // MXOPT_TILES_H_
