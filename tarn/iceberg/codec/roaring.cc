#include "tarn/iceberg/codec/roaring.h"

#include <bit>

#include <fmt/format.h>

namespace tarn::iceberg {
namespace {

constexpr uint32_t kCookieWithoutRuns = 12346;
constexpr uint32_t kCookieWithRuns = 12347;
constexpr uint32_t kOffsetsFrom = 4;  // With runs, smaller bitmaps have no offsets.
constexpr size_t kArrayCountMax = 4096;
constexpr size_t kBitsBytes = 8192;
constexpr size_t kContainersMax = 65536;

template <typename Int>
void Append(std::string& out, Int value) {
  for (size_t i = 0; i < sizeof(Int); ++i) {
    out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

enum class Form : uint8_t { kArray, kBits, kRuns };

/// Low 16 bits of the values of one container: a slice of the input.
struct Container {
  uint16_t key = 0;
  const int64_t* first = nullptr;
  size_t count = 0;
  size_t run_count = 0;

  [[nodiscard]] Form form() const {
    const size_t runs_bytes = 2 + 4 * run_count;
    const size_t other_bytes = count <= kArrayCountMax ? 2 * count : kBitsBytes;
    if (runs_bytes < other_bytes) {
      return Form::kRuns;
    }
    return count <= kArrayCountMax ? Form::kArray : Form::kBits;
  }
  [[nodiscard]] size_t size_bytes() const {
    switch (form()) {
      case Form::kRuns:
        return 2 + 4 * run_count;
      case Form::kArray:
        return 2 * count;
      case Form::kBits:
        break;
    }
    return kBitsBytes;
  }
};

uint16_t LowOf(int64_t value) { return static_cast<uint16_t>(value & 0xFFFF); }

std::vector<Container> SplitContainers(const int64_t* first, const int64_t* last) {
  std::vector<Container> containers;
  for (const int64_t* at = first; at != last; ++at) {
    const auto key = static_cast<uint16_t>((*at >> 16) & 0xFFFF);
    if (containers.empty() || containers.back().key != key) {
      containers.push_back({.key = key, .first = at});
    }
    Container& container = containers.back();
    ++container.count;
    const bool starts_run = at == container.first || *at != *(at - 1) + 1;
    container.run_count += starts_run ? 1 : 0;
  }
  return containers;
}

void AppendContainer(std::string& out, const Container& container) {
  const int64_t* const last = container.first + container.count;
  switch (container.form()) {
    case Form::kArray:
      for (const int64_t* at = container.first; at != last; ++at) {
        Append(out, LowOf(*at));
      }
      return;
    case Form::kBits: {
      std::string bits(kBitsBytes, '\0');
      for (const int64_t* at = container.first; at != last; ++at) {
        const uint16_t low = LowOf(*at);
        bits[low / 8] = static_cast<char>(bits[low / 8] | (1 << (low % 8)));
      }
      out += bits;
      return;
    }
    case Form::kRuns:
      break;
  }
  Append(out, static_cast<uint16_t>(container.run_count));
  for (const int64_t* at = container.first; at != last;) {
    const int64_t* end = at + 1;
    while (end != last && *end == *(end - 1) + 1) {
      ++end;
    }
    Append(out, LowOf(*at));
    Append(out, static_cast<uint16_t>(end - at - 1));
    at = end;
  }
}

void AppendBitmap(std::string& out, const int64_t* first, const int64_t* last) {
  const std::vector<Container> containers = SplitContainers(first, last);
  const size_t begin = out.size();
  bool any_runs = false;
  std::string run_flags((containers.size() + 7) / 8, '\0');
  for (size_t i = 0; i < containers.size(); ++i) {
    if (containers[i].form() == Form::kRuns) {
      any_runs = true;
      run_flags[i / 8] = static_cast<char>(run_flags[i / 8] | (1 << (i % 8)));
    }
  }
  if (any_runs) {
    Append(out, kCookieWithRuns | static_cast<uint32_t>(containers.size() - 1) << 16);
    out += run_flags;
  } else {
    Append(out, kCookieWithoutRuns);
    Append(out, static_cast<uint32_t>(containers.size()));
  }
  for (const Container& container : containers) {
    Append(out, container.key);
    Append(out, static_cast<uint16_t>(container.count - 1));
  }
  if (!any_runs || containers.size() >= kOffsetsFrom) {
    size_t offset = out.size() - begin + 4 * containers.size();
    for (const Container& container : containers) {
      Append(out, static_cast<uint32_t>(offset));
      offset += container.size_bytes();
    }
  }
  for (const Container& container : containers) {
    AppendContainer(out, container);
  }
}

class Decoder {
 public:
  Decoder(std::string_view bytes, uint64_t count_max) : bytes_(bytes), count_max_(count_max) {}

  Result<std::vector<int64_t>> Run() {
    TARN_ASSIGN_OR_RETURN(const uint64_t count, Read<uint64_t>());
    if (count > bytes_.size() / 4) {
      return Error(fmt::format("{} bitmaps are claimed", count));
    }
    int64_t last_key = -1;
    for (uint64_t i = 0; i < count; ++i) {
      TARN_ASSIGN_OR_RETURN(const uint32_t key, Read<uint32_t>());
      if (key > INT32_MAX || static_cast<int64_t>(key) <= last_key) {
        return Error(fmt::format("key {} is out of order or above 2^31", key));
      }
      last_key = key;
      TARN_RETURN_IF_ERROR(ReadBitmap(static_cast<int64_t>(key) << 32));
    }
    if (at_ != bytes_.size()) {
      return Error("bytes are left over");
    }
    return std::move(values_);
  }

 private:
  struct Header {
    int64_t base = 0;  // High bits of the values.
    uint32_t count = 0;
    bool runs = false;
  };

  [[nodiscard]] Status Error(std::string_view what) const {
    return Status::Corruption(fmt::format("bitmap, byte {}: {}", at_, what));
  }

  template <typename Int>
  Result<Int> Read() {
    if (bytes_.size() - at_ < sizeof(Int)) {
      return Error("the bytes end too early");
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(Int); ++i) {
      value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes_[at_ + i])) << (8 * i);
    }
    at_ += sizeof(Int);
    return static_cast<Int>(value);
  }

  Status ReadBitmap(int64_t base) {
    TARN_ASSIGN_OR_RETURN(const uint32_t cookie, Read<uint32_t>());
    size_t count = 0;
    std::string_view run_flags;
    if (cookie == kCookieWithoutRuns) {
      TARN_ASSIGN_OR_RETURN(count, Read<uint32_t>());
    } else if ((cookie & 0xFFFF) == kCookieWithRuns) {
      count = (cookie >> 16) + 1;
      TARN_ASSIGN_OR_RETURN(run_flags, Take((count + 7) / 8));
    } else {
      return Error(fmt::format("{:#x} is no bitmap cookie", cookie));
    }
    if (count > kContainersMax) {
      return Error(fmt::format("{} containers are claimed", count));
    }
    TARN_ASSIGN_OR_RETURN(const std::vector<Header> headers, ReadHeaders(base, count, run_flags));
    if (run_flags.empty() || count >= kOffsetsFrom) {
      // Containers follow each other in every file there is; offsets only help random access.
      TARN_RETURN_IF_ERROR(Take(4 * count));
    }
    for (const Header& header : headers) {
      TARN_RETURN_IF_ERROR(ReadContainer(header));
    }
    return Status::Ok();
  }

  Result<std::vector<Header>> ReadHeaders(int64_t base, size_t count, std::string_view run_flags) {
    std::vector<Header> headers;
    int32_t last_key = -1;
    for (size_t i = 0; i < count; ++i) {
      TARN_ASSIGN_OR_RETURN(const uint16_t key, Read<uint16_t>());
      TARN_ASSIGN_OR_RETURN(const uint16_t less_one, Read<uint16_t>());
      if (key <= last_key) {
        return Error(fmt::format("container {} is out of order", key));
      }
      last_key = key;
      Header header{.base = base + (static_cast<int64_t>(key) << 16), .count = less_one + 1U};
      header.runs = !run_flags.empty() && ((run_flags[i / 8] >> (i % 8)) & 1) != 0;
      headers.push_back(header);
    }
    return headers;
  }

  Result<std::string_view> Take(size_t size) {
    if (bytes_.size() - at_ < size) {
      return Error("the bytes end too early");
    }
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  Status ReadContainer(const Header& header) {
    if (values_.size() + header.count > count_max_) {
      return Status(ErrorCode::kResourceExhausted,
                    fmt::format("bitmap: it holds more than {} values", count_max_));
    }
    const size_t before = values_.size();
    if (header.runs) {
      TARN_RETURN_IF_ERROR(ReadRuns(header));
    } else if (header.count <= kArrayCountMax) {
      TARN_RETURN_IF_ERROR(ReadArray(header));
    } else {
      TARN_RETURN_IF_ERROR(ReadBits(header));
    }
    return values_.size() - before == header.count
               ? Status::Ok()
               : Error(fmt::format("a container claims {} values and has {}", header.count,
                                   values_.size() - before));
  }

  Status ReadArray(const Header& header) {
    int32_t last = -1;
    for (uint32_t i = 0; i < header.count; ++i) {
      TARN_ASSIGN_OR_RETURN(const uint16_t low, Read<uint16_t>());
      if (low <= last) {
        return Error("values are out of order");
      }
      last = low;
      values_.push_back(header.base + low);
    }
    return Status::Ok();
  }

  Status ReadBits(const Header& header) {
    for (int64_t word = 0; word < static_cast<int64_t>(kBitsBytes / 8); ++word) {
      TARN_ASSIGN_OR_RETURN(uint64_t bits, Read<uint64_t>());
      while (bits != 0) {
        values_.push_back(header.base + word * 64 + std::countr_zero(bits));
        bits &= bits - 1;
      }
    }
    return Status::Ok();
  }

  Status ReadRuns(const Header& header) {
    TARN_ASSIGN_OR_RETURN(const uint16_t count, Read<uint16_t>());
    int32_t last = -1;
    uint32_t total = 0;
    for (uint16_t i = 0; i < count; ++i) {
      TARN_ASSIGN_OR_RETURN(const uint16_t start, Read<uint16_t>());
      TARN_ASSIGN_OR_RETURN(const uint16_t less_one, Read<uint16_t>());
      const int32_t end = start + less_one;
      total += less_one + 1U;
      if (start <= last || end > UINT16_MAX || total > header.count) {
        return Error("runs are out of order or longer than claimed");
      }
      for (int32_t low = start; low <= end; ++low) {
        values_.push_back(header.base + low);
      }
      last = end;
    }
    return Status::Ok();
  }

  std::string_view bytes_;
  uint64_t count_max_;
  size_t at_ = 0;
  std::vector<int64_t> values_;
};

}  // namespace

std::string EncodeRoaring64(const std::vector<int64_t>& values) {
  std::string out(8, '\0');
  uint64_t bitmaps = 0;
  const int64_t* const end = values.data() + values.size();
  for (const int64_t* at = values.data(); at != end;) {
    const int64_t key = *at >> 32;
    const int64_t* last = at;
    while (last != end && (*last >> 32) == key) {
      ++last;
    }
    Append(out, static_cast<uint32_t>(key));
    AppendBitmap(out, at, last);
    ++bitmaps;
    at = last;
  }
  for (size_t i = 0; i < 8; ++i) {
    out[i] = static_cast<char>(bitmaps >> (8 * i));
  }
  return out;
}

Result<std::vector<int64_t>> DecodeRoaring64(std::string_view bytes, uint64_t count_max) {
  return Decoder(bytes, count_max).Run();
}

}  // namespace tarn::iceberg
