#include "tarn/source/files/decompressor.h"

#include <cstdint>
#include <utility>

#include <arrow/result.h>
#include <arrow/util/compression.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/check.h"

namespace tarn::source::files {

namespace {

arrow::Compression::type CodecOf(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      break;
    case Compression::kGzip:
      return arrow::Compression::GZIP;
    case Compression::kZstd:
      return arrow::Compression::ZSTD;
    case Compression::kBzip2:
      return arrow::Compression::BZ2;
    case Compression::kLz4:
      return arrow::Compression::LZ4_FRAME;
  }
  return arrow::Compression::UNCOMPRESSED;
}

}  // namespace

struct Decompressor::State {
  Compression compression = Compression::kNone;
  std::shared_ptr<arrow::util::Decompressor> codec;
  std::string fed;
  size_t used = 0;          // Of `fed`.
  bool in_padding = false;  // Only zeros may follow.
  Status damage;

  Status Damage(std::string_view what);
  bool SkipPadding();
  Status StartMember();
};

Status Decompressor::State::Damage(std::string_view what) {
  damage = Status::Corruption("the " + std::string(CompressionName(compression)) +
                              " data is damaged: " + std::string(what));
  return damage;
}

// False when something else than a zero follows.
bool Decompressor::State::SkipPadding() {
  while (used < fed.size() && fed[used] == '\0') {
    ++used;
  }
  return used == fed.size();
}

// Behind a whole member: another one, or padding.
Status Decompressor::State::StartMember() {
  if (fed[used] == '\0') {
    in_padding = true;
    return Status::Ok();
  }
  const arrow::Status reset = codec->Reset();
  return reset.ok() ? Status::Ok() : Damage(reset.message());
}

Decompressor::Decompressor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Decompressor::~Decompressor() = default;

Result<std::unique_ptr<Decompressor>> Decompressor::Make(Compression compression) {
  if (compression == Compression::kNone) {
    return Status::InvalidArgument("plain files need no decompressor");
  }
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<arrow::util::Codec> codec,
                        arrow::util::Codec::Create(CodecOf(compression)));
  auto state = std::make_unique<State>();
  state->compression = compression;
  TARN_ASSIGN_OR_RETURN(state->codec, codec->MakeDecompressor());
  return std::unique_ptr<Decompressor>(new Decompressor(std::move(state)));
}

void Decompressor::Feed(std::string bytes) {
  TARN_CHECK(state_->used == state_->fed.size());
  state_->fed = std::move(bytes);
  state_->used = 0;
}

Result<size_t> Decompressor::Read(char* out, size_t size) {
  State& state = *state_;
  while (state.damage.ok()) {
    const size_t left = state.fed.size() - state.used;
    if (state.in_padding) {
      return state.SkipPadding() ? Result<size_t>(0) : state.Damage("zeros stand inside of it");
    }
    if (state.codec->IsFinished()) {
      if (left == 0) {
        return size_t{0};
      }
      TARN_RETURN_IF_ERROR(state.StartMember());
      continue;
    }
    const auto* const in = reinterpret_cast<const uint8_t*>(state.fed.data() + state.used);
    const auto step =
        state.codec->Decompress(static_cast<int64_t>(left), in, static_cast<int64_t>(size),
                                reinterpret_cast<uint8_t*>(out));
    if (!step.ok()) {
      return state.Damage(step.status().message());
    }
    state.used += static_cast<size_t>(step->bytes_read);
    if (step->bytes_written > 0) {
      return static_cast<size_t>(step->bytes_written);
    }
    if (step->bytes_read == 0 && !state.codec->IsFinished()) {
      return left == 0 ? Result<size_t>(0) : state.Damage("it does not go on");
    }
  }
  return state.damage;
}

Status Decompressor::Finish() const {
  if (!state_->damage.ok() || state_->codec->IsFinished()) {
    return state_->damage;
  }
  return Status::Corruption("the file ends inside of its " +
                            std::string(CompressionName(state_->compression)) + " data");
}

}  // namespace tarn::source::files
