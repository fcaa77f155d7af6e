// JsonTape: one parsed JSON document as a flat, reusable array of nodes, and JsonValue, a cursor
// into it.
//
// JsonIndex finds the structural characters and validates UTF-8; the walk over them checks the
// whole grammar, keeps the text of every number (nothing is rounded) and points at strings in
// place, so that a document without escapes costs no copy. Neither parsing nor reading allocates
// once the buffers have grown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/format/record_error.h"

namespace tarn::format {

enum class JsonKind : uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

/// One element of the tape. Use JsonValue; this is public so that reading is inlined.
struct JsonNode {
  // kDecimal: a plain fraction of at most 18 digits. kNumber: any other number.
  enum class Kind : uint8_t {
    kNull,
    kFalse,
    kTrue,
    kInteger,
    kDecimal,
    kNumber,
    kString,
    kEscapedString,
    kArray,
    kObject
  };

  const char* data = nullptr;  // Number text, string content, or first byte of the raw text.
  union {
    int64_t integer = 0;  // kInteger: the value. kDecimal: the value times 10^scale.
    struct {
      uint32_t first;   // kEscapedString: offset of the raw text. Containers: number of members.
      uint32_t second;  // kEscapedString: size of the raw text.
    } extent;
  };
  uint32_t size = 0;           // Bytes at `data`; kInteger and kDecimal: scale << 16 | bytes.
  uint32_t kind_and_next = 0;  // Low 4 bits: kind; others: number of nodes of this subtree.

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(kind_and_next & 15U); }
  [[nodiscard]] uint32_t next() const { return kind_and_next >> 4U; }
};

class JsonIndex;
class JsonValue;

/// A member of an object: its name (unescaped) and value.
struct JsonMember;

/// A cursor into a JsonTape: two words, copied freely. Valid until the tape parses again or the
/// text it parsed goes away. Accessors that do not match kind() are bugs and give garbage.
class JsonValue {
 public:
  JsonValue() = default;
  JsonValue(const JsonNode* node, const char* text) : node_(node), text_(text) {}

  /// False for a default-constructed value: "there is no such member".
  explicit operator bool() const { return node_ != nullptr; }
  [[nodiscard]] inline JsonKind kind() const;
  [[nodiscard]] bool is_null() const { return node_->kind() == JsonNode::Kind::kNull; }
  [[nodiscard]] bool is_object() const { return node_->kind() == JsonNode::Kind::kObject; }
  [[nodiscard]] bool is_array() const { return node_->kind() == JsonNode::Kind::kArray; }
  [[nodiscard]] bool is_string() const { return kind() == JsonKind::kString; }

  /// kBoolean.
  [[nodiscard]] bool boolean() const { return node_->kind() == JsonNode::Kind::kTrue; }
  /// kString: the content without quotes, escapes resolved.
  [[nodiscard]] std::string_view string() const { return {node_->data, node_->size}; }
  /// kNumber: as written.
  [[nodiscard]] inline std::string_view number_text() const;
  /// kNumber: the value of one written without fraction and exponent that fits.
  [[nodiscard]] inline std::optional<int64_t> int64() const;
  /// The JSON text of the value as it stands in the document.
  [[nodiscard]] inline std::string_view text() const;

  /// kArray, kObject: number of elements or members (repeated ones counted).
  [[nodiscard]] uint32_t size() const { return node_->extent.first; }
  /// kObject: the value of the last member of that name; a false value when there is none.
  [[nodiscard]] inline JsonValue Find(std::string_view name) const;

  /// for (JsonMember member : value.members())   // kObject, in order of the text
  [[nodiscard]] inline auto members() const;
  /// for (JsonValue element : value.elements())  // kArray
  [[nodiscard]] inline auto elements() const;

  [[nodiscard]] const JsonNode& node() const { return *node_; }

 private:
  const JsonNode* node_ = nullptr;
  const char* text_ = nullptr;  // First byte of the parsed text.
};

struct JsonMember {
  std::string_view name;
  JsonValue value;
};

struct JsonLimits {
  uint32_t depth = 512;
  uint64_t max_record_bytes = 16U << 20U;  // At most 256 MiB.
};

/// Parses documents, one at a time. One owner thread.
class JsonTape {
 public:
  explicit JsonTape(JsonLimits limits = {});
  ~JsonTape();
  JsonTape(const JsonTape&) = delete;
  JsonTape& operator=(const JsonTape&) = delete;

  /// Parses exactly one document; white space around it is allowed. `text` must stay alive while
  /// root() is used. After a failure root() is false. Errors: kBadJson, kBadUtf8, kTooDeep,
  /// kTooLarge, kTruncated (also for text without any value).
  RecordFailure Parse(std::string_view text);
  /// The document of the last successful parse.
  [[nodiscard]] JsonValue root() const { return root_; }

  /// For JsonSplitter: finds the structural characters of many documents at once. Returns false
  /// when some string is not closed, holds a control character, or some byte is not UTF-8.
  bool Index(std::string_view window);
  /// What ParseNext did. kMore: the window ended inside the document.
  enum class Step : uint8_t { kDocument, kEnd, kMore, kFailed };
  /// Parses the next document of the window at structural character `cursor`, which then stands
  /// after it. kEnd: nothing but white space is left. kFailed: see `failure`, whose position counts
  /// from the start of the window.
  Step ParseNext(uint32_t& cursor, RecordFailure& failure);
  /// Offset in the window of structural character `cursor`; the window's size at the end.
  [[nodiscard]] uint32_t offset(uint32_t cursor) const;
  /// Offset one past the last byte of the document that ParseNext gave.
  [[nodiscard]] uint32_t document_end() const { return document_end_; }

 private:
  struct Walk;

  RecordFailure IndexFailure(std::string_view text) const;

  JsonLimits limits_;
  std::unique_ptr<JsonIndex> index_;
  std::vector<JsonNode> nodes_;
  std::vector<uint32_t> stack_;
  std::unique_ptr<char[]> unescaped_;
  size_t unescaped_capacity_ = 0;
  const char* text_ = nullptr;
  uint32_t text_size_ = 0;
  uint32_t document_end_ = 0;
  bool escapes_ = false;  // Some backslash is in the window.
  JsonValue root_;
};

// ---- inline ----

inline JsonKind JsonValue::kind() const {
  static constexpr JsonKind kKinds[16] = {JsonKind::kNull,   JsonKind::kBoolean, JsonKind::kBoolean,
                                          JsonKind::kNumber, JsonKind::kNumber,  JsonKind::kNumber,
                                          JsonKind::kString, JsonKind::kString,  JsonKind::kArray,
                                          JsonKind::kObject};
  return kKinds[static_cast<size_t>(node_->kind())];
}

inline std::string_view JsonValue::number_text() const {
  const bool packed = node_->kind() != JsonNode::Kind::kNumber;
  return {node_->data, packed ? node_->size & 0xffffU : node_->size};
}

inline std::optional<int64_t> JsonValue::int64() const {
  if (node_->kind() != JsonNode::Kind::kInteger) {
    return std::nullopt;
  }
  return node_->integer;
}

inline std::string_view JsonValue::text() const {
  switch (node_->kind()) {
    case JsonNode::Kind::kInteger:
    case JsonNode::Kind::kDecimal:
      return {node_->data, node_->size & 0xffffU};
    case JsonNode::Kind::kString:
      return {node_->data - 1, static_cast<size_t>(node_->size) + 2};
    case JsonNode::Kind::kEscapedString:
      return {text_ + node_->extent.first, node_->extent.second};
    default:
      return {node_->data, node_->size};
  }
}

namespace internal {

template <bool kMembers>
class JsonRange {
 public:
  class Iterator {
   public:
    Iterator(const JsonNode* base, const JsonNode* at, const char* text)
        : base_(base), at_(at), text_(text) {}
    auto operator*() const {
      if constexpr (kMembers) {
        return JsonMember{{at_->data, at_->size}, JsonValue(at_ + 1, text_)};
      } else {
        return JsonValue(at_, text_);
      }
    }
    Iterator& operator++() {
      const JsonNode* value = kMembers ? at_ + 1 : at_;
      at_ = value + value->next();
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const JsonNode* base_;
    const JsonNode* at_;
    const char* text_;
  };

  JsonRange(const JsonNode* node, const char* text) : node_(node), text_(text) {}
  [[nodiscard]] Iterator begin() const { return {node_, node_ + 1, text_}; }
  [[nodiscard]] Iterator end() const { return {node_, node_ + node_->next(), text_}; }

 private:
  const JsonNode* node_;
  const char* text_;
};

}  // namespace internal

inline auto JsonValue::members() const { return internal::JsonRange<true>(node_, text_); }
inline auto JsonValue::elements() const { return internal::JsonRange<false>(node_, text_); }

inline JsonValue JsonValue::Find(std::string_view name) const {
  JsonValue found;
  for (const JsonMember member : members()) {
    if (member.name == name) {
      found = member.value;
    }
  }
  return found;
}

}  // namespace tarn::format
