#include "tarn/format/json_tape.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "tarn/base/check.h"
#include "tarn/base/utf8.h"
#include "tarn/format/json_escape.h"
#include "tarn/format/json_index.h"

namespace tarn::format {

namespace {

constexpr uint64_t kRecordBytesMax = 256ULL << 20U;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// True when `rest`, which begins with an invalid sequence, is the beginning of a valid one.
bool EndsInsideSequence(std::string_view rest) {
  const auto lead = static_cast<unsigned char>(rest[0]);
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  return lead >= 0xc2 && lead <= 0xf4 && rest.size() < size &&
         std::all_of(
             rest.begin() + 1, rest.end(),
             [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80; });
}

// True when a backslash is among `size` bytes at `data`. Bytes before `readable_end` may be read.
inline bool HasBackslash(const char* data, size_t size, const char* readable_end) {
#if defined(__SSE2__)
  if (size <= 16 && data + 16 <= readable_end) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
    const auto mask =
        static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
    return (mask & ((1U << size) - 1U)) != 0;
  }
#endif
  return memchr(data, '\\', size) != nullptr;
}

// Reads the number [p, end) into `node`; false when it breaks the grammar.
inline bool ReadNumber(const char* p, const char* end, JsonNode& node) {
  const char* const begin = p;
  const bool negative = *p == '-';
  p += negative ? 1 : 0;
  if (p == end || !IsDigit(*p) || (*p == '0' && p + 1 < end && IsDigit(p[1]))) {
    return false;
  }
  uint64_t value = 0;
  const char* const digits = p;
  while (p < end && IsDigit(*p)) {
    value = value * 10 + static_cast<uint64_t>(*p++ - '0');
  }
  auto digit_count = static_cast<size_t>(p - digits);
  size_t scale = 0;
  bool exponent = false;
  const bool integral = p == end;
  if (p < end && *p == '.') {
    const char* const fraction = ++p;
    while (p < end && IsDigit(*p)) {
      value = value * 10 + static_cast<uint64_t>(*p++ - '0');
    }
    scale = static_cast<size_t>(p - fraction);
    if (scale == 0) {
      return false;
    }
    digit_count += scale;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    exponent = true;
    ++p;
    p += p < end && (*p == '+' || *p == '-') ? 1 : 0;
    const char* const power = p;
    while (p < end && IsDigit(*p)) {
      ++p;
    }
    if (p == power) {
      return false;
    }
  }
  if (p != end) {
    return false;
  }
  const auto size = static_cast<uint32_t>(end - begin);
  node.data = begin;
  node.size = size;
  JsonNode::Kind kind = JsonNode::Kind::kNumber;
  if (digit_count <= 18 && !exponent) {
    kind = integral ? JsonNode::Kind::kInteger : JsonNode::Kind::kDecimal;
    node.integer = negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
    node.size = static_cast<uint32_t>(scale) << 16U | size;
  } else if (integral && digit_count == 19) {
    if (std::from_chars(begin, end, node.integer).ec == std::errc()) {
      kind = JsonNode::Kind::kInteger;
    }
  }
  node.kind_and_next = 1U << 4U | static_cast<uint32_t>(kind);
  return true;
}

}  // namespace

// One document: the state of the walk over its structural characters.
struct JsonTape::Walk {
  const char* text;
  uint32_t text_size;
  const uint32_t* at;    // Next structural character.
  const uint32_t* last;  // Behind the last one.
  JsonNode* out;         // Next node.
  char* unescaped;
  bool escapes;
  RecordFailure& failure;

  [[nodiscard]] uint32_t NextOffset() const { return at + 1 < last ? at[1] : text_size; }

  Step Fail(uint32_t position, RecordError code, std::string message) const {
    failure = {code, position, std::move(message)};
    return Step::kFailed;
  }

  Step Unexpected(std::string_view expected) const {
    std::string message = "expected ";
    message.append(expected).append(", found ");
    const char c = text[*at];
    if (c >= ' ' && c < 0x7f) {
      message.append("'").append(1, c).append("'");
    } else {
      message.append("byte ").append(std::to_string(static_cast<unsigned char>(c)));
    }
    return Fail(*at, RecordError::kBadJson, std::move(message));
  }

  Step TooDeep(uint32_t depth_max) const {
    return Fail(*at, RecordError::kTooDeep,
                "more than " + std::to_string(depth_max) + " arrays and objects in each other");
  }

  // Reads the string whose opening quote is at *at.
  bool String() {
    const uint32_t start = *at;
    uint32_t close = NextOffset() - 1;
    while (IsSpace(text[close])) {
      --close;
    }
    if (close <= start || text[close] != '"') {
      Fail(start, RecordError::kBadJson, "a string is not closed");
      return false;
    }
    const char* data = text + start + 1;
    const uint32_t size = close - start - 1;
    out->data = data;
    out->size = size;
    out->kind_and_next = 1U << 4U | static_cast<uint32_t>(JsonNode::Kind::kString);
    if (escapes && HasBackslash(data, size, text + text_size)) {
      const size_t written = UnescapeJson({data, size}, unescaped, failure);
      if (written == std::string_view::npos) {
        failure.position_bytes += start + 1;
        return false;
      }
      out->data = unescaped;
      out->size = static_cast<uint32_t>(written);
      out->extent = {start, size + 2};
      out->kind_and_next = 1U << 4U | static_cast<uint32_t>(JsonNode::Kind::kEscapedString);
      unescaped += written;
    }
    ++out;
    ++at;
    return true;
  }

  // Reads the literal or number that starts at *at.
  bool Scalar() {
    const char* const begin = text + *at;
    const char* end = text + NextOffset();
    while (IsSpace(end[-1])) {
      --end;
    }
    const std::string_view word(begin, static_cast<size_t>(end - begin));
    const char c = *begin;
    if (c == '-' || IsDigit(c)) {
      if (!ReadNumber(begin, end, *out)) {
        Fail(*at, RecordError::kBadJson, "not a number");
        return false;
      }
    } else {
      JsonNode::Kind kind = JsonNode::Kind::kNull;
      if (word == "true") {
        kind = JsonNode::Kind::kTrue;
      } else if (word == "false") {
        kind = JsonNode::Kind::kFalse;
      } else if (word != "null") {
        Unexpected("a value");
        return false;
      }
      out->data = begin;
      out->size = static_cast<uint32_t>(word.size());
      out->kind_and_next = 1U << 4U | static_cast<uint32_t>(kind);
    }
    ++out;
    ++at;
    return true;
  }

  JsonNode* Open() {
    out->data = text + *at++;
    out->extent = {0, 0};
    return out++;
  }

  Step Name();
  Step Document(JsonNode* first, uint32_t* stack, uint32_t depth_max);
};

// Reads a member's name and the colon behind it. kDocument: done.
inline JsonTape::Step JsonTape::Walk::Name() {
  if (at == last) {
    return Step::kMore;
  }
  if (text[*at] != '"') {
    return Unexpected("a member name");
  }
  if (!String()) {
    return Step::kFailed;
  }
  if (at == last) {
    return Step::kMore;
  }
  if (text[*at] != ':') {
    return Unexpected("':' behind a member name");
  }
  ++at;
  return Step::kDocument;
}

JsonTape::Step JsonTape::Walk::Document(JsonNode* first, uint32_t* stack, uint32_t depth_max) {
  uint32_t depth = 0;
  JsonNode* open = nullptr;  // The innermost container.
  bool in_object = false;
  char c = 0;

value:
  if (at == last) {
    return Step::kMore;
  }
  c = text[*at];
  if (c == '"') {
    if (!String()) {
      return Step::kFailed;
    }
  } else if (c == '{' || c == '[') {
    if (depth == depth_max) {
      return TooDeep(depth_max);
    }
    in_object = c == '{';
    open = Open();
    stack[depth++] = static_cast<uint32_t>(open - first) << 1U | (in_object ? 1U : 0U);
    if (at == last) {
      return Step::kMore;
    }
    if (text[*at] == (in_object ? '}' : ']')) {
      goto close;
    }
    goto member;
  } else if (!Scalar()) {
    return Step::kFailed;
  }
  if (depth == 0) {
    return Step::kDocument;
  }

after_value:
  if (at == last) {
    return Step::kMore;
  }
  c = text[*at];
  if (c == ',') {
    ++at;
    goto member;
  }
  if (c != (in_object ? '}' : ']')) {
    return Unexpected(in_object ? "',' or '}' behind a member" : "',' or ']' behind an element");
  }

close:
  open->size = static_cast<uint32_t>(text + *at++ + 1 - open->data);
  open->kind_and_next =
      static_cast<uint32_t>(out - open) << 4U |
      static_cast<uint32_t>(in_object ? JsonNode::Kind::kObject : JsonNode::Kind::kArray);
  if (--depth == 0) {
    return Step::kDocument;
  }
  open = first + (stack[depth - 1] >> 1U);
  in_object = (stack[depth - 1] & 1U) != 0;
  goto after_value;

member:
  ++open->extent.first;
  if (in_object) {
    if (const Step step = Name(); step != Step::kDocument) [[unlikely]] {
      return step;
    }
  }
  goto value;
}

JsonTape::JsonTape(JsonLimits limits) : limits_(limits), index_(std::make_unique<JsonIndex>()) {
  limits_.max_record_bytes = std::min(limits_.max_record_bytes, kRecordBytesMax);
  stack_.resize(limits_.depth + 1U);
}

JsonTape::~JsonTape() = default;

bool JsonTape::Index(std::string_view window) {
  TARN_CHECK(window.size() <= 4 * kRecordBytesMax);
  root_ = {};
  text_ = window.data();
  text_size_ = static_cast<uint32_t>(window.size());
  if (!index_->Find(window)) {
    return false;
  }
  // A node takes at least one structural character.
  if (nodes_.size() < index_->size()) {
    nodes_.resize(index_->size() + 64U);
  }
  escapes_ = index_->has_backslash();
  if (escapes_ && unescaped_capacity_ < window.size()) {
    unescaped_capacity_ = window.size() + window.size() / 2;
    unescaped_ = std::make_unique_for_overwrite<char[]>(unescaped_capacity_);
  }
  return true;
}

JsonTape::Step JsonTape::ParseNext(uint32_t& cursor, RecordFailure& failure) {
  const uint32_t* const indexes = index_->begin();
  root_ = {};
  if (cursor >= index_->size()) {
    return Step::kEnd;
  }
  Walk walk{.text = text_,
            .text_size = text_size_,
            .at = indexes + cursor,
            .last = index_->end(),
            .out = nodes_.data(),
            .unescaped = unescaped_.get(),
            .escapes = escapes_,
            .failure = failure};
  const Step step = walk.Document(nodes_.data(), stack_.data(), limits_.depth);
  if (step == Step::kDocument) {
    cursor = static_cast<uint32_t>(walk.at - indexes);
    root_ = JsonValue(nodes_.data(), text_);
    const std::string_view whole = root_.text();
    document_end_ = static_cast<uint32_t>(whole.data() + whole.size() - text_);
  }
  return step;
}

uint32_t JsonTape::offset(uint32_t cursor) const {
  return cursor < index_->size() ? (*index_)[cursor] : text_size_;
}

RecordFailure JsonTape::IndexFailure(std::string_view text) const {
  const std::optional<size_t> invalid = FindInvalidUtf8(text);
  if (invalid.has_value() && !EndsInsideSequence(text.substr(*invalid))) {
    return {RecordError::kBadUtf8, *invalid, "a byte that is not UTF-8"};
  }
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (in_string && c < 0x20) {
      return {RecordError::kBadJson, i,
              "control character " + std::to_string(c) + " inside a string"};
    }
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    }
  }
  return {RecordError::kTruncated, text.size(), "the text ends inside a string"};
}

RecordFailure JsonTape::Parse(std::string_view text) {
  root_ = {};
  if (text.size() > limits_.max_record_bytes) {
    return {RecordError::kTooLarge, limits_.max_record_bytes,
            "longer than " + std::to_string(limits_.max_record_bytes) + " bytes"};
  }
  if (!Index(text)) {
    return IndexFailure(text);
  }
  RecordFailure failure;
  uint32_t cursor = 0;
  switch (ParseNext(cursor, failure)) {
    case Step::kDocument:
      break;
    case Step::kFailed:
      return failure;
    case Step::kEnd:
      return {RecordError::kTruncated, text.size(), "no value"};
    case Step::kMore:
      return {RecordError::kTruncated, text.size(), "the text ends inside a value"};
  }
  if (offset(cursor) != text.size()) {
    root_ = {};
    return {RecordError::kBadJson, offset(cursor), "more text behind the document"};
  }
  return {};
}

}  // namespace tarn::format
