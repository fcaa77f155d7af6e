#include "tarn/storage/arrow_file.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>

#include "tarn/base/arrow_status.h"

namespace tarn::storage {

namespace {

class InputFile final : public arrow::io::RandomAccessFile {
 public:
  explicit InputFile(std::unique_ptr<ObjectReader> reader) : reader_(std::move(reader)) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override {
    if (position < 0) {
      return arrow::Status::Invalid("seek to a negative position");
    }
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> GetSize() override {
    return static_cast<int64_t>(reader_->meta().size_bytes);
  }

  arrow::Result<int64_t> ReadAt(int64_t position, int64_t size, void* out) override {
    if (closed_ || position < 0 || size < 0) {
      return arrow::Status::Invalid("read from a closed file or a negative range of ",
                                    reader_->meta().key);
    }
    const Result<size_t> count =
        reader_->ReadAt(static_cast<uint64_t>(position), static_cast<size_t>(size), out);
    if (!count.ok()) {
      return ToArrow(count.status());
    }
    return static_cast<int64_t>(*count);
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t size) override {
    // Readers ask for more than there is at the end of a file; do not allocate what cannot come.
    const auto object_bytes = static_cast<int64_t>(reader_->meta().size_bytes);
    const int64_t wanted = std::min(size, std::max<int64_t>(object_bytes - position, 0));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ResizableBuffer> buffer,
                          arrow::AllocateResizableBuffer(wanted));
    ARROW_ASSIGN_OR_RAISE(const int64_t count, ReadAt(position, wanted, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(count));
    return buffer;
  }

  arrow::Result<int64_t> Read(int64_t size, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t count, ReadAt(position_, size, out));
    position_ += count;
    return count;
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer, ReadAt(position_, size));
    position_ += buffer->size();
    return buffer;
  }

 private:
  const std::unique_ptr<ObjectReader> reader_;
  int64_t position_ = 0;
  bool closed_ = false;
};

class OutputFile final : public arrow::io::OutputStream {
 public:
  explicit OutputFile(ObjectWriter& writer) : writer_(writer) {}

  using arrow::io::OutputStream::Write;
  arrow::Status Write(const void* bytes, int64_t size) override {
    if (closed_) {
      return arrow::Status::Invalid("write to a closed stream");
    }
    position_ += size;
    return ToArrow(writer_.Write({static_cast<const char*>(bytes), static_cast<size_t>(size)}));
  }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

 private:
  ObjectWriter& writer_;
  int64_t position_ = 0;
  bool closed_ = false;
};

}  // namespace

std::shared_ptr<arrow::io::RandomAccessFile> ArrowInput(std::unique_ptr<ObjectReader> reader) {
  return std::make_shared<InputFile>(std::move(reader));
}

Result<std::shared_ptr<arrow::io::RandomAccessFile>> OpenArrowInput(ObjectStore& store,
                                                                    std::string_view key) {
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> reader, store.OpenReader(key));
  return ArrowInput(std::move(reader));
}

std::shared_ptr<arrow::io::OutputStream> ArrowOutput(ObjectWriter& writer) {
  return std::make_shared<OutputFile>(writer);
}

}  // namespace tarn::storage
