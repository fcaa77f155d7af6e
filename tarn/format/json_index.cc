#include "tarn/format/json_index.h"

#include <array>
#include <bit>
#include <cstring>

#include "tarn/base/check.h"
#include "tarn/base/utf8.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TARN_AVX2 __attribute__((target("avx2,pclmul,bmi,popcnt"), always_inline)) inline
#define TARN_AVX2_ENTRY __attribute__((target("avx2,pclmul,bmi,popcnt")))
#endif

namespace tarn::format {

namespace {

constexpr size_t kBlock = 64;

// One bit per byte of a block.
struct BlockMasks {
  uint64_t quote = 0;
  uint64_t backslash = 0;
  uint64_t control = 0;  // Below 0x20.
  uint64_t space = 0;
  uint64_t op = 0;  // Brackets, ':' and ','; two control characters as well.
};

// What goes over from block to block.
struct Carry {
  uint64_t escaped = 0;    // 1: the next character is escaped.
  uint64_t in_string = 0;  // All ones inside a string.
  uint64_t scalar = 0;     // 1: the last character belongs to a number or literal.
  uint64_t backslashes = 0;
  uint64_t controls = 0;  // Control characters in strings.
};

// Characters that a backslash escapes: those behind a run of backslashes of odd length.
inline uint64_t Escaped(uint64_t backslash, Carry& carry) {
  if (backslash == 0) {
    const uint64_t escaped = carry.escaped;
    carry.escaped = 0;
    return escaped;
  }
  constexpr uint64_t kEven = 0x5555555555555555ULL;
  backslash &= ~carry.escaped;
  const uint64_t follows = backslash << 1U | carry.escaped;
  const uint64_t odd_starts = backslash & ~kEven & ~follows;
  uint64_t even_sequences = 0;
  carry.escaped = __builtin_add_overflow(odd_starts, backslash, &even_sequences) ? 1 : 0;
  return (kEven ^ (even_sequences << 1U)) & follows;
}

// Structural characters of a block, given where strings are.
inline uint64_t Structurals(const BlockMasks& masks, uint64_t quote, uint64_t in_string,
                            Carry& carry) {
  carry.in_string = static_cast<uint64_t>(static_cast<int64_t>(in_string) >> 63);
  carry.controls |= masks.control & in_string;
  carry.backslashes |= masks.backslash;
  const uint64_t scalar = ~(masks.op | masks.space);
  const uint64_t unquoted = scalar & ~quote;
  const uint64_t starts = scalar & ~(unquoted << 1U | carry.scalar);
  carry.scalar = unquoted >> 63U;
  // A string's characters and its closing quote do not count.
  return (masks.op | starts) & ~(in_string ^ quote);
}

inline uint32_t* Store(uint64_t bits, uint32_t base, uint32_t* out) {
  const int count = std::popcount(bits);
  uint32_t* const end = out + count;
  // Eight at a time: too many are written, never too few.
  for (int written = 0; written < count; written += 8) {
    for (int i = 0; i < 8; ++i) {
      out[i] = base + static_cast<uint32_t>(std::countr_zero(bits));
      bits &= bits - 1;
    }
    out += 8;
  }
  return end;
}

// ---- portable ----

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  for (size_t c = 0; c < 0x20; ++c) {
    classes[c] = 4;
  }
  for (const unsigned char c : {' ', '\t', '\n', '\r'}) {
    classes[c] = static_cast<uint8_t>(classes[c] | 8U);
  }
  for (const unsigned char c : {'{', '}', '[', ']', ':', ',', '\x0c', '\x1a'}) {
    classes[c] = static_cast<uint8_t>(classes[c] | 16U);
  }
  classes['"'] = 1;
  classes['\\'] = 2;
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = MakeClasses();

BlockMasks ClassifyPortable(const char* block) {
  BlockMasks masks;
  for (size_t i = 0; i < kBlock; ++i) {
    const uint64_t kind = kClasses[static_cast<unsigned char>(block[i])];
    masks.quote |= (kind & 1U) << i;
    masks.backslash |= (kind >> 1U & 1U) << i;
    masks.control |= (kind >> 2U & 1U) << i;
    masks.space |= (kind >> 3U & 1U) << i;
    masks.op |= (kind >> 4U & 1U) << i;
  }
  return masks;
}

// Bit i is the exclusive or of bits 0..i.
uint64_t PrefixXor(uint64_t bits) {
  for (const unsigned shift : {1U, 2U, 4U, 8U, 16U, 32U}) {
    bits ^= bits << shift;
  }
  return bits;
}

uint32_t* StepPortable(const char* block, uint32_t base, Carry& carry, uint32_t* out) {
  const BlockMasks masks = ClassifyPortable(block);
  const uint64_t quote = masks.quote & ~Escaped(masks.backslash, carry);
  const uint64_t in_string = PrefixXor(quote) ^ carry.in_string;
  return Store(Structurals(masks, quote, in_string, carry), base, out);
}

uint32_t* FindPortable(std::string_view text, Carry& carry, bool& valid, uint32_t* out) {
  size_t at = 0;
  for (; at + kBlock <= text.size(); at += kBlock) {
    out = StepPortable(text.data() + at, static_cast<uint32_t>(at), carry, out);
  }
  if (at < text.size()) {
    std::array<char, kBlock> last{};
    last.fill(' ');
    memcpy(last.data(), text.data() + at, text.size() - at);
    out = StepPortable(last.data(), static_cast<uint32_t>(at), carry, out);
  }
  valid = IsValidUtf8(text);
  return out;
}

#if defined(TARN_AVX2)

// ---- AVX2 ----

// Bits of the ways in which two neighbouring bytes can be wrong.
constexpr uint8_t kTooShort = 1U << 0U;
constexpr uint8_t kTooLong = 1U << 1U;
constexpr uint8_t kOverlong3 = 1U << 2U;
constexpr uint8_t kTooLarge = 1U << 3U;
constexpr uint8_t kSurrogate = 1U << 4U;
constexpr uint8_t kOverlong2 = 1U << 5U;
constexpr uint8_t kTooLarge1000 = 1U << 6U;
constexpr uint8_t kOverlong4 = 1U << 6U;
constexpr uint8_t kTwoContinuations = 1U << 7U;
constexpr uint8_t kCarry = kTooShort | kTooLong | kTwoContinuations;

using Table = std::array<uint8_t, 16>;
constexpr Table kFirstHigh = {kTooLong,
                              kTooLong,
                              kTooLong,
                              kTooLong,
                              kTooLong,
                              kTooLong,
                              kTooLong,
                              kTooLong,
                              kTwoContinuations,
                              kTwoContinuations,
                              kTwoContinuations,
                              kTwoContinuations,
                              kTooShort | kOverlong2,
                              kTooShort,
                              kTooShort | kOverlong3 | kSurrogate,
                              kTooShort | kTooLarge | kTooLarge1000 | kOverlong4};
constexpr Table kFirstLow = {kCarry | kOverlong3 | kOverlong2 | kOverlong4,
                             kCarry | kOverlong2,
                             kCarry,
                             kCarry,
                             kCarry | kTooLarge,
                             kCarry | kTooLarge | kTooLarge1000,
                             kCarry | kTooLarge | kTooLarge1000,
                             kCarry | kTooLarge | kTooLarge1000,
                             kCarry | kTooLarge | kTooLarge1000,
                             kCarry | kTooLarge | kTooLarge1000,
                             kCarry | kTooLarge | kTooLarge1000,
                             kCarry | kTooLarge | kTooLarge1000,
                             kCarry | kTooLarge | kTooLarge1000,
                             kCarry | kTooLarge | kTooLarge1000 | kSurrogate,
                             kCarry | kTooLarge | kTooLarge1000,
                             kCarry | kTooLarge | kTooLarge1000};
constexpr uint8_t kSecond = kTooLong | kOverlong2 | kTwoContinuations;
constexpr Table kSecondHigh = {kTooShort,
                               kTooShort,
                               kTooShort,
                               kTooShort,
                               kTooShort,
                               kTooShort,
                               kTooShort,
                               kTooShort,
                               kSecond | kOverlong3 | kTooLarge1000 | kOverlong4,
                               kSecond | kOverlong3 | kTooLarge,
                               kSecond | kSurrogate | kTooLarge,
                               kSecond | kSurrogate | kTooLarge,
                               kTooShort,
                               kTooShort,
                               kTooShort,
                               kTooShort};
constexpr Table kSpaces = {' ', 100,  100,  100, 17,  100,  113, 2,
                           100, '\t', '\n', 112, 100, '\r', 100, 100};
constexpr Table kOps = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ':', '{', ',', '}', 0, 0};

struct Utf8Check {
  __m256i error;
  __m256i previous;
  __m256i incomplete;
};

TARN_AVX2 __m256i Load(const Table& table) {
  return _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(table.data())));
}

TARN_AVX2 __m256i High(__m256i bytes) {
  return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
}

// Checks 32 bytes, of which some may not be ASCII.
TARN_AVX2 void CheckUtf8(__m256i bytes, Utf8Check& check) {
  const __m256i joined = _mm256_permute2x128_si256(check.previous, bytes, 0x21);
  const __m256i before1 = _mm256_alignr_epi8(bytes, joined, 15);
  const __m256i before2 = _mm256_alignr_epi8(bytes, joined, 14);
  const __m256i before3 = _mm256_alignr_epi8(bytes, joined, 13);
  const __m256i special = _mm256_and_si256(
      _mm256_and_si256(
          _mm256_shuffle_epi8(Load(kFirstHigh), High(before1)),
          _mm256_shuffle_epi8(Load(kFirstLow), _mm256_and_si256(before1, _mm256_set1_epi8(15)))),
      _mm256_shuffle_epi8(Load(kSecondHigh), High(bytes)));
  // Third bytes follow 111_____ two before, fourth bytes 1111____ three before.
  const __m256i third = _mm256_subs_epu8(before2, _mm256_set1_epi8(static_cast<char>(0xe0 - 0x80)));
  const __m256i fourth =
      _mm256_subs_epu8(before3, _mm256_set1_epi8(static_cast<char>(0xf0 - 0x80)));
  const __m256i must_continue =
      _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(static_cast<char>(0x80)));
  check.error = _mm256_or_si256(check.error, _mm256_xor_si256(must_continue, special));
  // The last bytes may begin a sequence that goes on in the next block.
  const __m256i limit =
      _mm256_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                       -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, static_cast<char>(0xf0 - 1),
                       static_cast<char>(0xe0 - 1), static_cast<char>(0xc0 - 1));
  check.incomplete = _mm256_subs_epu8(bytes, limit);
  check.previous = bytes;
}

TARN_AVX2 uint64_t Mask(__m256i low, __m256i high) {
  return static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
         static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32U;
}

TARN_AVX2 uint64_t EqualMask(__m256i low, __m256i high, char c) {
  const __m256i wanted = _mm256_set1_epi8(c);
  return Mask(_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted));
}

TARN_AVX2 BlockMasks ClassifyAvx2(__m256i low, __m256i high) {
  const __m256i spaces = Load(kSpaces);
  const __m256i ops = Load(kOps);
  const __m256i curly = _mm256_set1_epi8(0x20);
  const __m256i last_control = _mm256_set1_epi8(0x1f);
  return {
      .quote = EqualMask(low, high, '"'),
      .backslash = EqualMask(low, high, '\\'),
      .control = Mask(_mm256_cmpeq_epi8(_mm256_min_epu8(low, last_control), low),
                      _mm256_cmpeq_epi8(_mm256_min_epu8(high, last_control), high)),
      .space = Mask(_mm256_cmpeq_epi8(low, _mm256_shuffle_epi8(spaces, low)),
                    _mm256_cmpeq_epi8(high, _mm256_shuffle_epi8(spaces, high))),
      .op = Mask(_mm256_cmpeq_epi8(_mm256_or_si256(low, curly), _mm256_shuffle_epi8(ops, low)),
                 _mm256_cmpeq_epi8(_mm256_or_si256(high, curly), _mm256_shuffle_epi8(ops, high)))};
}

TARN_AVX2 uint32_t* StepAvx2(const char* block, uint32_t base, Carry& carry, Utf8Check& check,
                             uint32_t* out) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 32));
  if (_mm256_movemask_epi8(_mm256_or_si256(low, high)) == 0) {
    check.error = _mm256_or_si256(check.error, check.incomplete);
    check.incomplete = _mm256_setzero_si256();
    check.previous = high;
  } else {
    CheckUtf8(low, check);
    CheckUtf8(high, check);
  }
  const BlockMasks masks = ClassifyAvx2(low, high);
  const uint64_t quote = masks.quote & ~Escaped(masks.backslash, carry);
  const __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, static_cast<int64_t>(quote)),
                                               _mm_set1_epi8(static_cast<char>(0xff)), 0);
  const uint64_t in_string = static_cast<uint64_t>(_mm_cvtsi128_si64(product)) ^ carry.in_string;
  return Store(Structurals(masks, quote, in_string, carry), base, out);
}

TARN_AVX2_ENTRY uint32_t* FindAvx2(std::string_view text, Carry& carry, bool& valid,
                                   uint32_t* out) {
  Utf8Check check{_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  size_t at = 0;
  for (; at + kBlock <= text.size(); at += kBlock) {
    out = StepAvx2(text.data() + at, static_cast<uint32_t>(at), carry, check, out);
  }
  if (at < text.size()) {
    std::array<char, kBlock> last{};
    last.fill(' ');
    memcpy(last.data(), text.data() + at, text.size() - at);
    out = StepAvx2(last.data(), static_cast<uint32_t>(at), carry, check, out);
  }
  check.error = _mm256_or_si256(check.error, check.incomplete);
  valid = _mm256_testz_si256(check.error, check.error) != 0;
  return out;
}

#endif

}  // namespace

JsonIndex::Level JsonIndex::BestLevel() {
#if defined(TARN_AVX2)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 &&
                               __builtin_cpu_supports("pclmul") != 0 &&
                               __builtin_cpu_supports("bmi") != 0;
  return has_avx2 ? Level::kAvx2 : Level::kPortable;
#else
  return Level::kPortable;
#endif
}

bool JsonIndex::Find(std::string_view text) {
  TARN_CHECK(text.size() < UINT32_MAX);
  if (capacity_ < text.size() + kBlock) {
    capacity_ = text.size() + text.size() / 2 + 2 * kBlock;
    offsets_ = std::make_unique_for_overwrite<uint32_t[]>(capacity_);
  }
  Carry carry;
  bool valid = true;
  uint32_t* end = nullptr;
#if defined(TARN_AVX2)
  if (level_ == Level::kAvx2) {
    end = FindAvx2(text, carry, valid, offsets_.get());
  }
#endif
  if (end == nullptr) {
    end = FindPortable(text, carry, valid, offsets_.get());
  }
  has_backslash_ = carry.backslashes != 0;
  const bool good = valid && carry.in_string == 0 && carry.controls == 0;
  count_ = good ? static_cast<uint32_t>(end - offsets_.get()) : 0;
  return good;
}

}  // namespace tarn::format
