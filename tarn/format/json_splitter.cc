#include "tarn/format/json_splitter.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tarn::format {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsOneOf(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// Finds the end of one bracketed value by its brackets and strings only; can stop and go on.
struct BracketScan {
  enum class State : uint8_t { kInside, kBalanced, kBroken };
  int64_t depth = 0;
  bool in_string = false;
  bool escaped = false;
  char last_on_line = 0;  // Last character that is not white space.
  bool new_line = false;  // Only white space since the line began.

  // Consumes text from `at` on. kBalanced: `at` stands behind the value. kBroken: `at` stands at a
  // place that no valid value has (a line break in a string, two values without a comma).
  State Run(std::string_view text, size_t& at) {
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (in_string) {
        if (c == '\n') {
          return State::kBroken;
        }
        in_string = escaped || c != '"';
        escaped = !escaped && c == '\\';
        continue;
      }
      if (IsSpace(c)) {
        new_line = new_line || c == '\n';
        continue;
      }
      if (new_line && !IsOneOf(last_on_line, "{[,:") && !IsOneOf(c, ",}]:")) {
        return State::kBroken;
      }
      new_line = false;
      last_on_line = c;
      in_string = c == '"';
      if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == '}' || c == ']') && --depth <= 0) {
        ++at;
        return State::kBalanced;
      }
    }
    return State::kInside;
  }
};

}  // namespace

// kRecord: `record` is filled. kAgain: something moved, go on. kStarved: more bytes are needed.
enum class JsonSplitter::Outcome : uint8_t { kRecord, kAgain, kStarved };

struct JsonSplitter::State {
  explicit State(JsonSplitterOptions given) : options(given), tape(given.limits) {
    options.window_bytes = std::max<uint32_t>(options.window_bytes, 64);
    Clear(0);
  }

  void Clear(uint64_t offset_bytes) {
    buffer.clear();
    begin = 0;
    buffer_offset = offset_bytes;
    finished = false;
    started = offset_bytes > 0;
    in_array = false;
    skipping = false;
    window_open = false;
    window_size = options.window_bytes;
    wanted = 0;
    slow_until = 0;
    row = 0;
  }

  [[nodiscard]] std::string_view Rest(size_t from) const {
    return {buffer.data() + from, buffer.size() - from};
  }
  // Text to the end of the line that holds `from`, line break included; npos when it is not there.
  [[nodiscard]] size_t LineEnd(size_t from) const {
    const std::string_view rest = Rest(from);
    const auto* found = rest.empty() ? nullptr : memchr(rest.data(), '\n', rest.size());
    if (found == nullptr) {
      return std::string_view::npos;
    }
    return static_cast<size_t>(static_cast<const char*>(found) - buffer.data()) + 1;
  }

  void Feed(std::string_view chunk);
  Outcome Step(JsonRecord& record);
  Outcome OpenWindow();
  Outcome FastStep(JsonRecord& record);
  Outcome SlowStep(JsonRecord& record);
  Outcome Starve(size_t from, JsonRecord& record);
  Outcome SkipTooLarge();
  Outcome Recover(size_t start, RecordFailure failure, JsonRecord& record);
  bool PassPunctuation(size_t at);
  [[nodiscard]] size_t Indent(size_t start) const;
  [[nodiscard]] size_t NextStart(size_t line, size_t indent) const;
  bool StarveForMore(size_t start);
  Outcome Emit(size_t start, size_t end, RecordFailure failure, JsonRecord& record);

  JsonSplitterOptions options;
  JsonTape tape;
  std::vector<char> buffer;
  size_t begin = 0;            // First byte of the buffer that is not consumed.
  uint64_t buffer_offset = 0;  // Offset in the stream of buffer[0].
  bool finished = false;
  bool started = false;   // The byte order mark has been looked for.
  bool in_array = false;  // Between '[' and ']' whose elements are the records.
  bool skipping = false;  // Inside a record that is too large.
  BracketScan skip;
  bool window_open = false;  // The tape has indexed [window_begin, window_end).
  size_t window_begin = 0;
  size_t window_end = 0;
  uint32_t cursor = 0;
  size_t window_size = 0;
  size_t wanted = 0;      // Bytes behind `begin` without which another try is useless.
  size_t slow_until = 0;  // One by one up to this place of the buffer.
  uint64_t row = 0;
};

void JsonSplitter::State::Feed(std::string_view chunk) {
  window_open = false;
  if (begin > 0) {
    const size_t rest = buffer.size() - begin;
    memmove(buffer.data(), buffer.data() + begin, rest);
    buffer.resize(rest);
    buffer_offset += begin;
    slow_until -= std::min(slow_until, begin);
    begin = 0;
  }
  buffer.insert(buffer.end(), chunk.begin(), chunk.end());
}

JsonSplitter::Outcome JsonSplitter::State::Emit(size_t start, size_t end, RecordFailure failure,
                                                JsonRecord& record) {
  record.text = {buffer.data() + start, end - start};
  while (!record.text.empty() && IsSpace(record.text.back())) {
    record.text.remove_suffix(1);
  }
  record.row = row++;
  record.offset_bytes = buffer_offset + start;
  record.failure = std::move(failure);
  record.value = record.failure.ok() ? tape.root() : JsonValue();
  if (record.failure.ok() && record.text.size() > options.limits.max_record_bytes) {
    record.value = {};
    record.failure = {RecordError::kTooLarge, options.limits.max_record_bytes,
                      "the record has " + std::to_string(record.text.size()) + " bytes, allowed " +
                          std::to_string(options.limits.max_record_bytes)};
  }
  if (record.failure.code == RecordError::kTooLarge) {
    record.text = record.text.substr(0, options.kept_bytes);
  } else if (record.failure.ok() && options.objects_only && !record.value.is_object()) {
    record.failure = {RecordError::kNotAnObject, 0, "the value is no object"};
  }
  begin = end;
  wanted = 0;
  return Outcome::kRecord;
}

// Handles '[', ',' and ']' between records; false when a record starts at `at`.
bool JsonSplitter::State::PassPunctuation(size_t at) {
  const char c = buffer[at];
  if (c == '[' && !in_array) {
    in_array = true;
  } else if (c == ']' && in_array) {
    in_array = false;
  } else if (c != ',' || !in_array) {
    return false;
  }
  begin = at + 1;
  return true;
}

JsonSplitter::Outcome JsonSplitter::State::OpenWindow() {
  const size_t available = buffer.size() - begin;
  if (!finished && available < wanted) {
    return Outcome::kStarved;
  }
  const size_t size = std::min(available, window_size);
  size_t end = begin + size;
  if (!finished || end < buffer.size()) {
    const auto* newline = size == 0 ? nullptr : memrchr(buffer.data() + begin, '\n', size);
    if (newline != nullptr) {
      end = static_cast<size_t>(static_cast<const char*>(newline) - buffer.data()) + 1;
    } else if (!finished && available < window_size) {
      wanted = window_size;
      return Outcome::kStarved;
    }
  }
  window_begin = begin;
  window_end = end;
  cursor = 0;
  if (!tape.Index({buffer.data() + begin, end - begin})) {
    slow_until = end;
    window_size = 4096;
    return Outcome::kAgain;
  }
  window_open = true;
  window_size =
      std::max<size_t>(window_size, std::min<size_t>(window_size * 2, options.window_bytes));
  return Outcome::kAgain;
}

// The record at `from` is not complete in the buffer.
JsonSplitter::Outcome JsonSplitter::State::Starve(size_t from, JsonRecord& record) {
  const size_t have = buffer.size() - from;
  window_open = false;
  if (have > options.limits.max_record_bytes) {
    skipping = true;
    skip = {};
    const Outcome outcome =
        Emit(from, std::min(buffer.size(), from + options.kept_bytes),
             {RecordError::kTooLarge, options.limits.max_record_bytes,
              "longer than " + std::to_string(options.limits.max_record_bytes) + " bytes"},
             record);
    begin = from;
    return outcome;
  }
  if (finished) {
    return Recover(from, {RecordError::kTruncated, have, "the input ends inside a value"}, record);
  }
  begin = from;
  wanted = have * 2;
  window_size = std::max(window_size, have * 2);
  return Outcome::kStarved;
}

JsonSplitter::Outcome JsonSplitter::State::SkipTooLarge() {
  size_t at = 0;
  const auto state = skip.Run(Rest(begin), at);
  begin += at;
  if (state == BracketScan::State::kInside && !finished) {
    return Outcome::kStarved;
  }
  if (state == BracketScan::State::kBroken) {
    const size_t line = LineEnd(begin);
    begin = line == std::string_view::npos ? buffer.size() : line;
  }
  skipping = false;
  return Outcome::kAgain;
}

// Columns before the first visible character of the line that holds `start`.
size_t JsonSplitter::State::Indent(size_t start) const {
  size_t line = start;
  while (line > 0 && buffer[line - 1] != '\n') {
    --line;
  }
  size_t indent = 0;
  while (line + indent < start && IsSpace(buffer[line + indent])) {
    ++indent;
  }
  return indent;
}

// True when more bytes should come before the end of the malformed record at `start` is decided.
bool JsonSplitter::State::StarveForMore(size_t start) {
  if (finished || buffer.size() - start > options.limits.max_record_bytes) {
    return false;
  }
  begin = start;
  wanted = (buffer.size() - start) * 2;
  return true;
}

// First line from `line` on that starts a record, indented no deeper than `indent`.
size_t JsonSplitter::State::NextStart(size_t line, size_t indent) const {
  while (line < buffer.size()) {
    size_t first = line;
    while (first < buffer.size() && (buffer[first] == ' ' || buffer[first] == '\t')) {
      ++first;
    }
    if (first < buffer.size() && IsOneOf(buffer[first], "{[") && first - line <= indent) {
      return line;
    }
    const size_t next = LineEnd(line);
    line = next == std::string_view::npos ? buffer.size() : next;
  }
  return line;
}

// Decides where the malformed record at `start` ends, and reports it.
JsonSplitter::Outcome JsonSplitter::State::Recover(size_t start, RecordFailure failure,
                                                   JsonRecord& record) {
  window_open = false;
  const size_t found = LineEnd(start);
  if (found == std::string_view::npos && StarveForMore(start)) {
    return Outcome::kStarved;
  }
  const size_t line_end = found == std::string_view::npos ? buffer.size() : found;
  const bool bracket = buffer[start] == '{' || buffer[start] == '[';
  if (bracket) {
    BracketScan scan;
    size_t size = 0;
    const std::string_view line(buffer.data() + start, line_end - start);
    if (scan.Run(line, size) == BracketScan::State::kBalanced) {
      return Emit(start, start + size, std::move(failure), record);
    }
  }
  size_t last = line_end;
  while (last > start && IsSpace(buffer[last - 1])) {
    --last;
  }
  size_t end = line_end;
  if (bracket && last > start && IsOneOf(buffer[last - 1], "{[,:")) {
    end = NextStart(line_end, Indent(start));
    if (end == buffer.size() && StarveForMore(start)) {
      return Outcome::kStarved;
    }
  }
  return Emit(start, end, std::move(failure), record);
}

JsonSplitter::Outcome JsonSplitter::State::FastStep(JsonRecord& record) {
  const size_t start = window_begin + tape.offset(cursor);
  if (start >= window_end) {
    begin = window_end;
    window_open = false;
    return Outcome::kAgain;
  }
  const char c = buffer[start];
  if (c != '{' && PassPunctuation(start)) {
    ++cursor;
    return Outcome::kAgain;
  }
  RecordFailure failure;
  switch (tape.ParseNext(cursor, failure)) {
    case JsonTape::Step::kDocument:
      return Emit(start, window_begin + tape.document_end(), {}, record);
    case JsonTape::Step::kFailed:
      failure.position_bytes -= start - window_begin;
      return Recover(start, std::move(failure), record);
    case JsonTape::Step::kMore:
      if (window_end == buffer.size()) {
        return Starve(start, record);
      }
      if (window_end - start > options.limits.max_record_bytes) {
        return Starve(start, record);
      }
      if (start == window_begin && buffer.size() - start <= window_size) {
        return Starve(start, record);  // All lines there are have been tried.
      }
      // A cut at a line break can give the same window again, hence the doubling.
      window_size = start == window_begin ? window_size * 2 : window_size;
      begin = start;
      window_open = false;
      return Outcome::kAgain;
    case JsonTape::Step::kEnd:
      break;
  }
  return Outcome::kAgain;
}

JsonSplitter::Outcome JsonSplitter::State::SlowStep(JsonRecord& record) {
  while (begin < buffer.size() && IsSpace(buffer[begin])) {
    ++begin;
  }
  if (begin == buffer.size() || PassPunctuation(begin)) {
    return Outcome::kAgain;
  }
  const size_t start = begin;
  size_t end = start;
  if (buffer[start] == '{' || buffer[start] == '[') {
    BracketScan scan;
    size_t size = 0;
    const auto state = scan.Run(Rest(start), size);
    if (state == BracketScan::State::kInside) {
      return Starve(start, record);
    }
    if (state == BracketScan::State::kBroken) {
      RecordFailure failure = tape.Parse({buffer.data() + start, size + 1});
      return Recover(start, std::move(failure), record);
    }
    end = start + size;
  } else {
    const size_t line = LineEnd(start);
    if (line == std::string_view::npos && !finished) {
      return Starve(start, record);
    }
    end = line == std::string_view::npos ? buffer.size() : line;
  }
  if (end - start > options.limits.max_record_bytes) {
    return Emit(start, end,
                {RecordError::kTooLarge, options.limits.max_record_bytes,
                 "the record has " + std::to_string(end - start) + " bytes"},
                record);
  }
  RecordFailure failure = tape.Parse({buffer.data() + start, end - start});
  if (!failure.ok()) {
    slow_until = 0;  // This was what spoilt the window.
  }
  return Emit(start, end, std::move(failure), record);
}

JsonSplitter::Outcome JsonSplitter::State::Step(JsonRecord& record) {
  if (!started) {
    if (buffer.size() < kByteOrderMark.size() && !finished) {
      return Outcome::kStarved;
    }
    started = true;
    begin = Rest(0).starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  }
  if (window_open) {
    return FastStep(record);
  }
  if (begin == buffer.size()) {
    if (finished && in_array) {
      in_array = false;
      return Emit(begin, begin, {RecordError::kTruncated, 0, "the input ends inside an array"},
                  record);
    }
    return Outcome::kStarved;
  }
  if (skipping) {
    return SkipTooLarge();
  }
  return begin < slow_until ? SlowStep(record) : OpenWindow();
}

JsonSplitter::JsonSplitter(JsonSplitterOptions options)
    : state_(std::make_unique<State>(options)) {}

JsonSplitter::~JsonSplitter() = default;

void JsonSplitter::Feed(std::string_view chunk) { state_->Feed(chunk); }

void JsonSplitter::Finish() {
  state_->window_open = false;
  state_->finished = true;
}

void JsonSplitter::Reset(uint64_t offset_bytes) { state_->Clear(offset_bytes); }

std::optional<uint64_t> JsonSplitter::ResumeOffset() const {
  if (state_->in_array || state_->skipping) {
    return std::nullopt;
  }
  return state_->buffer_offset + state_->begin;
}

bool JsonSplitter::Next(JsonRecord& record) {
  for (;;) {
    switch (state_->Step(record)) {
      case Outcome::kRecord:
        return true;
      case Outcome::kStarved:
        return false;
      case Outcome::kAgain:
        break;
    }
  }
}

}  // namespace tarn::format
