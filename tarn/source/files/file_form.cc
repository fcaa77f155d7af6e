#include "tarn/source/files/file_form.h"

#include <algorithm>

namespace tarn::source::files {

namespace {

using std::string_view_literals::operator""sv;

struct Mark {
  std::string_view bytes;
  FileForm form;
  size_t at = 0;  // Where the bytes stand.
};

constexpr FileForm Refused(std::string_view what) { return {.refused = what}; }

// None of these can begin JSON.
constexpr Mark kMarks[] = {
    {"\x1f\x8b"sv, {.compression = Compression::kGzip}},
    {"\x28\xb5\x2f\xfd"sv, {.compression = Compression::kZstd}},
    {"\x04\x22\x4d\x18"sv, {.compression = Compression::kLz4}},
    {"\x02\x21\x4c\x18"sv, Refused("an lz4 file of the legacy form")},
    {"PK\x03\x04"sv, Refused("a zip archive")},
    {"PK\x05\x06"sv, Refused("a zip archive")},
    {"PK\x07\x08"sv, Refused("a zip archive")},
    {"\xff\x06\x00\x00sNaPpY"sv, Refused("packed with snappy")},
    {"\xfd\x37zXZ\x00"sv, Refused("packed with xz")},
    {"7z\xbc\xaf\x27\x1c"sv, Refused("a 7z archive")},
    {"Rar!\x1a\x07"sv, Refused("a rar archive")},
    {"LZIP\x01"sv, Refused("packed with lzip")},
    {"\x1f\x9d"sv, Refused("packed with compress")},
    {"PAR1"sv, Refused("a Parquet file")},
    {"PARE"sv, Refused("an encrypted Parquet file")},
    {"ARROW1\x00"sv, Refused("an Arrow file")},
    {"Obj\x01"sv, Refused("an Avro file")},
    {"SQLite format 3\x00"sv, Refused("an SQLite database")},
    {"ustar"sv, Refused("a tar archive"), 257},
};

// "BZh", the size of blocks, and the mark of a first block or of an empty stream.
bool IsBzip2(std::string_view head) {
  if (head.size() < 4 || !head.starts_with("BZh") || head[3] < '1' || head[3] > '9') {
    return false;
  }
  const std::string_view rest = head.substr(4, 6);
  return "\x31\x41\x59\x26\x53\x59"sv.starts_with(rest) ||
         "\x17\x72\x45\x38\x50\x90"sv.starts_with(rest);
}

// Frames to be passed over, which some writers of zstd put first.
bool IsSkippableFrame(std::string_view head) {
  return head.size() >= 4 && (head[0] & '\xf0') == '\x50' && head.substr(1, 3) == "\x2a\x4d\x18"sv;
}

// "ORC" and the first byte of a stripe, which is no text.
bool IsOrc(std::string_view head) {
  return head.size() > 3 && head.starts_with("ORC") &&
         (static_cast<unsigned char>(head[3]) < 0x20 || static_cast<unsigned char>(head[3]) > 0x7e);
}

}  // namespace

std::string_view CompressionName(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "plain";
    case Compression::kGzip:
      return "gzip";
    case Compression::kZstd:
      return "zstd";
    case Compression::kBzip2:
      return "bzip2";
    case Compression::kLz4:
      return "lz4";
  }
  return "";
}

FileForm RecogniseForm(std::string_view head) {
  const auto* const found =
      std::find_if(std::begin(kMarks), std::end(kMarks), [&](const Mark& mark) {
        return head.size() >= mark.at && head.substr(mark.at).starts_with(mark.bytes);
      });
  if (found != std::end(kMarks)) {
    return found->form;
  }
  if (IsBzip2(head)) {
    return {.compression = Compression::kBzip2};
  }
  if (IsSkippableFrame(head)) {
    return {.compression = Compression::kZstd};
  }
  return IsOrc(head) ? Refused("an ORC file") : FileForm{};
}

}  // namespace tarn::source::files
