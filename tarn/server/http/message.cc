#include "tarn/server/http/message.h"

#include <algorithm>
#include <cstring>

namespace tarn::server::http {

namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return Lower(x) == Lower(y); });
}

void Headers::Add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::Set(std::string name, std::string value) {
  Remove(name);
  Add(std::move(name), std::move(value));
}

void Headers::Remove(std::string_view name) {
  std::erase_if(fields_, [&](const auto& field) { return EqualsIgnoringCase(field.first, name); });
}

std::optional<std::string_view> Headers::Find(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (EqualsIgnoringCase(key, name)) {
      return value;
    }
  }
  return std::nullopt;
}

bool Headers::HasToken(std::string_view name, std::string_view token) const {
  for (const auto& [key, value] : fields_) {
    if (!EqualsIgnoringCase(key, name)) {
      continue;
    }
    std::string_view rest = value;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      if (EqualsIgnoringCase(Trim(rest.substr(0, comma)), token)) {
        return true;
      }
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
  }
  return false;
}

Result<size_t> StringBodyReader::Read(char* out, size_t size) {
  const size_t count = std::min(size, body_.size() - offset_bytes_);
  std::memcpy(out, body_.data() + offset_bytes_, count);
  offset_bytes_ += count;
  return count;
}

Result<std::string> ReadAll(BodyReader& body, uint64_t size_bytes_max) {
  const auto too_large = [&](uint64_t found) {
    return Status::InvalidArgument("read the request body: at most " +
                                   std::to_string(size_bytes_max) +
                                   " bytes are taken here, found " + std::to_string(found))
        .WithReason("RequestEntityTooLarge",
                    "{\"maximumSizeBytes\":" + std::to_string(size_bytes_max) + "}");
  };
  const uint64_t declared = body.content_length().value_or(0);
  if (declared > size_bytes_max) {
    return too_large(declared);
  }
  std::string all;
  size_t used = 0;
  for (;;) {
    if (used == all.size()) {
      // One byte more than allowed shows that there is more, without holding it.
      const uint64_t next = std::max<uint64_t>({4096, declared + 1, used * 2});
      all.resize(static_cast<size_t>(std::min<uint64_t>(next, size_bytes_max + 1)));
    }
    TARN_ASSIGN_OR_RETURN(const size_t count, body.Read(all.data() + used, all.size() - used));
    if (count == 0) {
      all.resize(used);
      return all;
    }
    used += count;
    if (used > size_bytes_max) {
      return too_large(used);
    }
  }
}

}  // namespace tarn::server::http
