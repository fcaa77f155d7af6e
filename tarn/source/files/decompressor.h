// Decompressor: a compressed file piece by piece, at constant memory whatever it expands to.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/source/files/file_form.h"

namespace tarn::source::files {

/// Reads all members or frames that stand one behind the other; zeros behind the last one are
/// padding. One owner thread.
class Decompressor {
 public:
  /// Errors: kInvalidArgument for kNone; kUnimplemented when the codec was left out of the build.
  static Result<std::unique_ptr<Decompressor>> Make(Compression compression);
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// Takes the next bytes of the file. Only after Read returned 0.
  void Feed(std::string bytes);
  /// Writes up to `size` bytes, at least one, to `out`; 0: everything fed is used up.
  /// Errors: kCorruption when the bytes are damaged, now and at every later call.
  Result<size_t> Read(char* out, size_t size);
  /// The file has ended, and Read returned 0. Errors: kCorruption when it ends too early.
  [[nodiscard]] Status Finish() const;

 private:
  struct State;
  explicit Decompressor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tarn::source::files
