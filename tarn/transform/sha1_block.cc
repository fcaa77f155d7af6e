#include "tarn/transform/sha1_block.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tarn::transform {
namespace {

using State = std::array<uint32_t, 5>;
constexpr State kInitial = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
constexpr size_t kBlock = 64;

uint32_t LoadBigEndian(const uint8_t* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return __builtin_bswap32(word);
}

void CompressPortable(const uint8_t* block, State& state) {
  std::array<uint32_t, 80> w;
  for (size_t i = 0; i < 16; ++i) {
    w[i] = LoadBigEndian(block + 4 * i);
  }
  for (size_t i = 16; i < 80; ++i) {
    w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  const auto step = [&](uint32_t mixed, uint32_t constant, uint32_t word) {
    const uint32_t next = std::rotl(a, 5) + mixed + e + constant + word;
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  };
  for (size_t i = 0; i < 20; ++i) {
    step((b & c) | (~b & d), 0x5A827999, w[i]);
  }
  for (size_t i = 20; i < 40; ++i) {
    step(b ^ c ^ d, 0x6ED9EBA1, w[i]);
  }
  for (size_t i = 40; i < 60; ++i) {
    step((b & c) | (b & d) | (c & d), 0x8F1BBCDC, w[i]);
  }
  for (size_t i = 60; i < 80; ++i) {
    step(b ^ c ^ d, 0xCA62C1D6, w[i]);
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

#if defined(__x86_64__)
#define TARN_SHA_TARGET __attribute__((target("sha,sse4.1,ssse3"), always_inline)) inline

struct Lanes {
  __m128i abcd;
  __m128i before;  // abcd before the last four rounds: holds what becomes e.
  __m128i words[4];
};

/// Rounds 4 * i … 4 * i + 3 with the mixing function kFunction = i / 5.
template <int kStep, int kFunction>
TARN_SHA_TARGET void FourRounds(__m128i e_start, Lanes& lanes) {
  __m128i word = lanes.words[kStep % 4];
  if constexpr (kStep >= 4) {
    word = _mm_sha1msg1_epu32(word, lanes.words[(kStep + 1) % 4]);
    word = _mm_xor_si128(word, lanes.words[(kStep + 2) % 4]);
    word = _mm_sha1msg2_epu32(word, lanes.words[(kStep + 3) % 4]);
    lanes.words[kStep % 4] = word;
  }
  const __m128i e =
      kStep == 0 ? _mm_add_epi32(e_start, word) : _mm_sha1nexte_epu32(lanes.before, word);
  lanes.before = lanes.abcd;
  lanes.abcd = _mm_sha1rnds4_epu32(lanes.abcd, e, kFunction);
}

template <int kFunction>
TARN_SHA_TARGET void TwentyRounds(__m128i e_start, Lanes& lanes) {
  FourRounds<kFunction * 5, kFunction>(e_start, lanes);
  FourRounds<kFunction * 5 + 1, kFunction>(e_start, lanes);
  FourRounds<kFunction * 5 + 2, kFunction>(e_start, lanes);
  FourRounds<kFunction * 5 + 3, kFunction>(e_start, lanes);
  FourRounds<kFunction * 5 + 4, kFunction>(e_start, lanes);
}

__attribute__((target("sha,sse4.1,ssse3"))) void CompressSha(const uint8_t* block, State& state) {
  const __m128i reverse = _mm_set_epi64x(0x0001020304050607LL, 0x08090A0B0C0D0E0FLL);
  Lanes lanes;
  __m128i abcd;
  std::memcpy(&abcd, state.data(), sizeof(abcd));
  abcd = _mm_shuffle_epi32(abcd, 0x1B);
  const __m128i e_start = _mm_set_epi32(static_cast<int>(state[4]), 0, 0, 0);
  lanes.abcd = abcd;
  lanes.before = abcd;
  for (int i = 0; i < 4; ++i) {
    __m128i word;
    std::memcpy(&word, block + 16 * i, sizeof(word));
    lanes.words[i] = _mm_shuffle_epi8(word, reverse);
  }
  TwentyRounds<0>(e_start, lanes);
  TwentyRounds<1>(e_start, lanes);
  TwentyRounds<2>(e_start, lanes);
  TwentyRounds<3>(e_start, lanes);
  const __m128i e = _mm_sha1nexte_epu32(lanes.before, e_start);
  abcd = _mm_shuffle_epi32(_mm_add_epi32(lanes.abcd, abcd), 0x1B);
  std::memcpy(state.data(), &abcd, sizeof(abcd));
  state[4] = static_cast<uint32_t>(_mm_extract_epi32(e, 3));
}

bool HasShaInstructions() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool sse =
      __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0 && (c & bit_SSSE3) != 0;
  return sse && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 29)) != 0;
}
#endif

using Compress = void (*)(const uint8_t*, State&);

void Hash(Compress compress, std::string_view message, uint8_t* digest) {
  State state = kInitial;
  const auto* bytes = reinterpret_cast<const uint8_t*>(message.data());
  size_t rest = message.size();
  for (; rest >= kBlock; rest -= kBlock, bytes += kBlock) {
    compress(bytes, state);
  }
  // What is left, the byte 0x80, zeros, and the length in bits as the last eight bytes.
  std::array<uint8_t, 2 * kBlock> tail{};
  if (rest > 0) {
    std::memcpy(tail.data(), bytes, rest);
  }
  tail[rest] = 0x80;
  const size_t size = rest + 9 <= kBlock ? kBlock : 2 * kBlock;
  const uint64_t bits = __builtin_bswap64(static_cast<uint64_t>(message.size()) * 8);
  std::memcpy(tail.data() + size - 8, &bits, sizeof(bits));
  for (size_t offset = 0; offset < size; offset += kBlock) {
    compress(tail.data() + offset, state);
  }
  for (size_t i = 0; i < state.size(); ++i) {
    const uint32_t word = __builtin_bswap32(state[i]);
    std::memcpy(digest + 4 * i, &word, sizeof(word));
  }
}

}  // namespace

void Sha1Short(std::string_view message, uint8_t* digest) {
#if defined(__x86_64__)
  static const Compress kCompress = HasShaInstructions() ? CompressSha : CompressPortable;
  Hash(kCompress, message, digest);
#else
  Hash(CompressPortable, message, digest);
#endif
}

void Sha1Portable(std::string_view message, uint8_t* digest) {
  Hash(CompressPortable, message, digest);
}

}  // namespace tarn::transform
