#include "tarn/server/native/register_rows.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/arrow_status.h"
#include "tarn/base/hash.h"
#include "tarn/base/uuid.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;

constexpr size_t kRowsPerBatch = 5000;
constexpr size_t kLineBytesMax = 64 << 10;
constexpr size_t kPieceBytes = 64 << 10;

Result<std::string> TextOf(const json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) {
    return std::string();
  }
  if (!found->is_string()) {
    return Status::InvalidArgument(fmt::format("{} must be a text, found {}", name, found->dump()));
  }
  return found->get<std::string>();
}

// A count of 0 or more, as a number or, as the other routes write sizes, a text of digits.
Result<std::optional<int64_t>> CountOf(const json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) {
    return std::optional<int64_t>();
  }
  int64_t count = -1;
  if (found->is_number_integer()) {
    count = found->get<int64_t>();
  } else if (found->is_string()) {
    const std::string& text = found->get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    count = error == std::errc() && end == text.data() + text.size() ? count : -1;
  }
  if (count < 0) {
    return Status::InvalidArgument(
        fmt::format("{} must be a whole number of 0 or more, found {}", name, found->dump()));
  }
  return std::optional<int64_t>(count);
}

// "xxh3:" and 16 hexadecimal digits.
Result<std::optional<uint64_t>> ParseChecksum(const std::string& text) {
  if (text.empty()) {
    return std::optional<uint64_t>();
  }
  uint64_t digest = 0;
  const char* const end = text.data() + text.size();
  const bool prefixed = text.starts_with("xxh3:") && text.size() == 21;
  const auto parsed = std::from_chars(prefixed ? text.data() + 5 : end, end, digest, 16);
  if (!prefixed || parsed.ec != std::errc() || parsed.ptr != end) {
    return Status::InvalidArgument(
        fmt::format("checksum must be xxh3: and 16 hexadecimal digits, found \"{}\"", text));
  }
  return std::optional<uint64_t>(digest);
}

// Folders of the warehouse that the server fills itself: those of datasets are named by a uuid.
bool IsServersOwn(std::string_view key) {
  const std::string_view first = key.substr(0, key.find('/'));
  return first == "tables" || first.starts_with('.') || Uuid::Parse(first).ok();
}

Status AtRow(int64_t number, const Status& status) {
  return status.WithContext(fmt::format("row {}", number));
}

// Collects rows and hands them on in batches. One owner thread.
class Batcher {
 public:
  explicit Batcher(const RegisterBatch& batch) : batch_(batch) {}

  Status Add(RegisterRow row) {
    rows_.push_back(std::move(row));
    return rows_.size() < kRowsPerBatch ? Status::Ok() : Flush();
  }
  Status Flush() {
    const std::vector<RegisterRow> rows = std::exchange(rows_, {});
    return rows.empty() ? Status::Ok() : batch_(rows);
  }

 private:
  const RegisterBatch& batch_;
  std::vector<RegisterRow> rows_;
};

Status AddLine(std::string_view line, int64_t number, Batcher& batcher) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) {
    line.remove_suffix(1);
  }
  if (line.empty()) {
    return Status::Ok();
  }
  const json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (row.is_discarded()) {
    return AtRow(number,
                 Status::InvalidArgument(fmt::format("no JSON object: {}", line.substr(0, 200))));
  }
  Result<RegisterRow> parsed = ParseRegisterRow(row);
  return parsed.ok() ? batcher.Add(*std::move(parsed)) : AtRow(number, parsed.status());
}

Status ReadLines(http::BodyReader& body, const RegisterBatch& batch) {
  Batcher batcher(batch);
  std::string rest;
  std::string piece(kPieceBytes, '\0');
  int64_t number = 0;
  while (true) {
    TARN_ASSIGN_OR_RETURN(const size_t count, body.Read(piece.data(), piece.size()));
    if (count == 0) {
      break;
    }
    rest.append(piece, 0, count);
    size_t begin = 0;
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      TARN_RETURN_IF_ERROR(
          AddLine(std::string_view(rest).substr(begin, end - begin), ++number, batcher));
      begin = end + 1;
    }
    rest.erase(0, begin);
    if (rest.size() > kLineBytesMax) {
      return AtRow(number + 1, Status::InvalidArgument("longer than 64 KiB"));
    }
  }
  TARN_RETURN_IF_ERROR(AddLine(rest, number + 1, batcher));
  return batcher.Flush();
}

// A request body as Arrow reads its inputs. One owner thread.
class BodyStream final : public arrow::io::InputStream {
 public:
  explicit BodyStream(http::BodyReader& body) : body_(body) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Result<int64_t> Read(int64_t size, void* out) override {
    int64_t done = 0;
    while (done < size) {
      const Result<size_t> count =
          body_.Read(static_cast<char*>(out) + done, static_cast<size_t>(size - done));
      if (!count.ok()) {
        return ToArrow(count.status());
      }
      if (*count == 0) {
        break;
      }
      done += static_cast<int64_t>(*count);
    }
    position_ += done;
    return done;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override {
    // A length that the sender only claims must not be believed before its bytes arrive.
    std::string bytes;
    while (static_cast<int64_t>(bytes.size()) < size) {
      const size_t before = bytes.size();
      bytes.resize(std::min<size_t>(static_cast<size_t>(size), before + (1 << 20)));
      ARROW_ASSIGN_OR_RAISE(const int64_t count, Read(static_cast<int64_t>(bytes.size() - before),
                                                      bytes.data() + before));
      if (count < static_cast<int64_t>(bytes.size() - before)) {
        bytes.resize(before + static_cast<size_t>(count));
        break;
      }
    }
    return arrow::Buffer::FromString(std::move(bytes));
  }

 private:
  http::BodyReader& body_;
  bool closed_ = false;
  int64_t position_ = 0;
};

// The columns of one record batch; missing optional ones are null.
struct Columns {
  std::shared_ptr<arrow::StringArray> path;
  std::shared_ptr<arrow::StringArray> uri;
  std::shared_ptr<arrow::Int64Array> size_bytes;
  std::shared_ptr<arrow::StringArray> checksum;
  std::shared_ptr<arrow::Int64Array> row_count;
};

template <typename Array>
Status TakeColumn(const arrow::RecordBatch& batch, const char* name,
                  std::shared_ptr<Array>& column) {
  const std::shared_ptr<arrow::Array> found = batch.GetColumnByName(name);
  if (found == nullptr) {
    return Status::Ok();
  }
  column = std::dynamic_pointer_cast<Array>(found);
  return column != nullptr ? Status::Ok()
                           : Status::InvalidArgument(fmt::format(
                                 "column {} must be {}, found {}", name,
                                 Array::TypeClass::type_name(), found->type()->ToString()));
}

Result<Columns> ColumnsOf(const arrow::RecordBatch& batch) {
  Columns columns;
  TARN_RETURN_IF_ERROR(TakeColumn(batch, "path", columns.path));
  TARN_RETURN_IF_ERROR(TakeColumn(batch, "uri", columns.uri));
  TARN_RETURN_IF_ERROR(TakeColumn(batch, "sizeBytes", columns.size_bytes));
  TARN_RETURN_IF_ERROR(TakeColumn(batch, "checksum", columns.checksum));
  TARN_RETURN_IF_ERROR(TakeColumn(batch, "rowCount", columns.row_count));
  if (columns.path == nullptr || columns.uri == nullptr) {
    return Status::InvalidArgument("the stream needs the columns path and uri, found " +
                                   batch.schema()->ToString());
  }
  return columns;
}

std::string TextAt(const std::shared_ptr<arrow::StringArray>& column, int64_t i) {
  return column == nullptr || column->IsNull(i) ? std::string() : column->GetString(i);
}

std::optional<int64_t> CountAt(const std::shared_ptr<arrow::Int64Array>& column, int64_t i) {
  return column == nullptr || column->IsNull(i) ? std::nullopt
                                                : std::optional<int64_t>(column->Value(i));
}

Status AddBatch(const arrow::RecordBatch& rows, int64_t& number, Batcher& batcher) {
  const arrow::Status valid = rows.ValidateFull();
  if (!valid.ok()) {
    return Status::InvalidArgument("the Arrow stream is damaged: " + valid.message());
  }
  TARN_ASSIGN_OR_RETURN(const Columns columns, ColumnsOf(rows));
  for (int64_t i = 0; i < rows.num_rows(); ++i) {
    ++number;
    RegisterRow row{.path = TextAt(columns.path, i),
                    .uri = TextAt(columns.uri, i),
                    .size_bytes = CountAt(columns.size_bytes, i),
                    .checksum = TextAt(columns.checksum, i),
                    .row_count = CountAt(columns.row_count, i)};
    if (row.path.empty() || row.uri.empty()) {
      return AtRow(number, Status::InvalidArgument("path and uri must not be empty"));
    }
    if (row.size_bytes.value_or(0) < 0 || row.row_count.value_or(0) < 0) {
      return AtRow(number, Status::InvalidArgument("sizeBytes and rowCount must be 0 or more"));
    }
    TARN_RETURN_IF_ERROR(batcher.Add(std::move(row)));
  }
  return Status::Ok();
}

Status ReadArrow(http::BodyReader& body, const RegisterBatch& batch) {
  Batcher batcher(batch);
  const auto stream = std::make_shared<BodyStream>(body);
  const auto opened = arrow::ipc::RecordBatchStreamReader::Open(stream);
  if (!opened.ok()) {
    return Status::InvalidArgument("the body is no Arrow stream: " + opened.status().message());
  }
  int64_t number = 0;
  while (true) {
    std::shared_ptr<arrow::RecordBatch> rows;
    const arrow::Status read = (*opened)->ReadNext(&rows);
    if (!read.ok()) {
      return Status::InvalidArgument(
          fmt::format("the Arrow stream breaks after row {}: {}", number, read.message()));
    }
    if (rows == nullptr) {
      return batcher.Flush();
    }
    TARN_RETURN_IF_ERROR(AddBatch(*rows, number, batcher));
  }
}

}  // namespace

Result<RegisterRow> ParseRegisterRow(const json& row) {
  if (!row.is_object()) {
    return Status::InvalidArgument(
        fmt::format("a row is an object of path, uri and sizeBytes, found {}", row.type_name()));
  }
  RegisterRow parsed;
  TARN_ASSIGN_OR_RETURN(parsed.path, TextOf(row, "path"));
  TARN_ASSIGN_OR_RETURN(parsed.uri, TextOf(row, "uri"));
  TARN_ASSIGN_OR_RETURN(parsed.size_bytes, CountOf(row, "sizeBytes"));
  TARN_ASSIGN_OR_RETURN(parsed.checksum, TextOf(row, "checksum"));
  TARN_ASSIGN_OR_RETURN(parsed.row_count, CountOf(row, "rowCount"));
  if (parsed.path.empty() || parsed.uri.empty()) {
    return Status::InvalidArgument("a row needs path and uri, found " + row.dump().substr(0, 300));
  }
  return parsed;
}

Result<dataset::StoredFile> CheckRegisterRow(storage::ObjectStore& store, const RegisterRow& row) {
  const json details = {{"path", row.path}, {"uri", row.uri}};
  const Result<std::string> key = storage::KeyOf(store, row.uri);
  if (!key.ok()) {
    return Status::InvalidArgument(fmt::format("register {}: {} is outside of {}, the only store "
                                               "of this server; copy it there or upload it",
                                               row.path, row.uri, store.base_uri()))
        .WithReason("UnsupportedUri", details.dump());
  }
  if (IsServersOwn(*key)) {
    return Status::PermissionDenied(
               fmt::format("register {}: {} is an object that the server wrote itself", row.path,
                           row.uri))
        .WithReason("ObjectNotImportable", details.dump());
  }
  const Result<storage::ObjectMeta> meta = store.Head(*key);
  if (!meta.ok() && meta.status().code() == ErrorCode::kNotFound) {
    return Status::NotFound(fmt::format("register {}: there is no object {}", row.path, row.uri))
        .WithReason("ObjectNotFound", details.dump());
  }
  TARN_RETURN_IF_ERROR(meta);
  const auto size_bytes = static_cast<int64_t>(meta->size_bytes);
  if (row.size_bytes && *row.size_bytes != size_bytes) {
    return Status::InvalidArgument(fmt::format("register {}: {} has {} bytes, not {}", row.path,
                                               row.uri, size_bytes, *row.size_bytes))
        .WithReason("ObjectSizeMismatch", details.dump());
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<uint64_t> checksum, ParseChecksum(row.checksum));
  return dataset::StoredFile{.path = row.path,
                             .location = row.uri,
                             .managed = false,
                             .size_bytes = size_bytes,
                             .checksum = checksum,
                             .etag = meta->etag,
                             .row_count = row.row_count,
                             .statistics = std::nullopt};
}

Status ReadRegisterRows(http::BodyReader& body, std::string_view content_type,
                        const RegisterBatch& batch) {
  return content_type.find("arrow") != std::string_view::npos ? ReadArrow(body, batch)
                                                              : ReadLines(body, batch);
}

}  // namespace tarn::server::native
