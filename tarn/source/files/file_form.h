// FileForm: what the first bytes of a file say about it: packed, or of a kind that nothing here
// reads. Names of files say nothing. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tarn::source::files {

enum class Compression : uint8_t { kNone, kGzip, kZstd, kBzip2, kLz4 };

/// For people: "gzip", "lz4".
std::string_view CompressionName(Compression compression);

struct FileForm {
  Compression compression = Compression::kNone;
  /// What the file is, when it has to be refused, e.g. "a zip archive"; empty otherwise.
  std::string_view refused;
  friend bool operator==(const FileForm&, const FileForm&) = default;
};

/// The first bytes that RecogniseForm wants; a file may have fewer.
inline constexpr size_t kFormBytes = 512;

/// Recognises gzip, zstd, bzip2 and lz4 frames, and refuses archives, columnar files and other ways
/// to pack. Everything else is taken for plain content.
FileForm RecogniseForm(std::string_view head);

}  // namespace tarn::source::files
