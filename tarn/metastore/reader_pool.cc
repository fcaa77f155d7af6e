#include "tarn/metastore/reader_pool.h"

#include <utility>

namespace tarn::metastore {

ReaderPool::ReaderPool(ReaderPoolOptions options, Opener open)
    : options_(std::move(options)), open_(std::move(open)) {}

Status ReaderPool::Read(const SqlFunction& function) {
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<Connection> reader, Take());
  Status status = Begin(reader);
  if (status.ok()) {
    status = RunFunction(*reader, function);
    if (!reader->IsLost() && reader->InTransaction()) {
      const Status ended = reader->EndRead();
      if (!ended.ok()) {
        Drop();
        return status.ok() ? ended : status;
      }
    }
  }
  if (reader == nullptr || reader->IsLost()) {
    Drop();
  } else {
    Give(std::move(reader));
  }
  return status;
}

Status ReaderPool::Begin(std::unique_ptr<Connection>& reader) {
  Status begun = reader->BeginRead();
  if (begun.ok() || !reader->IsLost()) {
    return begun;
  }
  reader.reset();
  TARN_ASSIGN_OR_RETURN(reader, open_());
  return reader->BeginRead();
}

Result<std::unique_ptr<Connection>> ReaderPool::Take() {
  {
    std::unique_lock lock(mutex_);
    if (!returned_.wait_for(lock, options_.wait_max,
                            [&] { return !idle_.empty() || open_count_ < options_.readers_max; })) {
      return Status(ErrorCode::kResourceExhausted, "metastore " + options_.name + ": all " +
                                                       std::to_string(options_.readers_max) +
                                                       " read connections are busy");
    }
    if (!idle_.empty()) {
      std::unique_ptr<Connection> reader = std::move(idle_.back());
      idle_.pop_back();
      return reader;
    }
    ++open_count_;
  }
  Result<std::unique_ptr<Connection>> opened = open_();
  if (!opened.ok()) {
    Drop();
  }
  return opened;
}

void ReaderPool::Give(std::unique_ptr<Connection> reader) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(reader));
  }
  returned_.notify_one();
}

void ReaderPool::Drop() {
  {
    const std::lock_guard lock(mutex_);
    --open_count_;
  }
  returned_.notify_one();
}

}  // namespace tarn::metastore
