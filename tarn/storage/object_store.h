// ObjectStore: named, immutable byte sequences, the only way tarn touches stored data.
//
// Implementations: LocalStore (files), MemoryStore and FaultyStore (tests). All of them run
// object_store_contract.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"

namespace tarn::storage {

/// What a store can do beyond reading, writing, listing and deleting.
struct Capabilities {
  bool put_if_absent = false;  // A write can be refused when the key exists, atomically.
  bool etag = false;           // ObjectMeta::etag changes with the content.
  bool start_after = false;    // List starts after a key without reading what is before it.
  bool presign = false;
  friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

/// What is known of an object without reading it.
struct ObjectMeta {
  std::string key;
  uint64_t size_bytes = 0;
  std::string etag;  // Empty where the store has none.
  Timestamp modified{};
  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

enum class WriteMode {
  kOverwrite,
  kPutIfAbsent,  // kAlreadyExists when the key exists; needs Capabilities::put_if_absent.
};

/// Bytes [offset_bytes, offset_bytes + size_bytes) of an object.
struct ByteRange {
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
};

struct ListRequest {
  std::string prefix;       // Plain text prefix of keys, not a folder.
  std::string start_after;  // Exclusive; empty = from the beginning.
  size_t limit = 1000;      // Objects per page, 1..10,000.
};

/// Objects in byte order of their keys.
struct ListPage {
  std::vector<ObjectMeta> objects;
  bool truncated = false;  // More follow: list again with start_after = last key.
};

/// Random access to one object. Threads: concurrent ReadAt calls are fine.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  [[nodiscard]] virtual const ObjectMeta& meta() const = 0;
  /// Reads up to `size` bytes into `out`; fewer only at the end of the object. Returns the count.
  virtual Result<size_t> ReadAt(uint64_t offset_bytes, size_t size, void* out) = 0;
};

/// Streams one new object. One owner thread. Destroying it without Close is Abort.
class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;
  virtual Status Write(std::string_view bytes) = 0;
  /// Makes the object visible and durable, whole or not at all. After a failure other than
  /// kCommitStateUnknown nothing is visible.
  virtual Result<ObjectMeta> Close() = 0;
  /// Leaves nothing behind.
  virtual void Abort() = 0;
};

/// Threads: any. Keys: UTF-8, 1..1024 bytes, '/' separates folders, no empty, "." or ".." segment.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  /// URI of the root without trailing slash, e.g. "file:///home/me/.tarn/warehouse".
  [[nodiscard]] virtual const std::string& base_uri() const = 0;

  /// Errors: kNotFound.
  virtual Result<ObjectMeta> Head(std::string_view key) = 0;
  /// Errors: kNotFound.
  virtual Result<std::unique_ptr<ObjectReader>> OpenReader(std::string_view key) = 0;
  /// Errors: kInvalidArgument on a bad key. kAlreadyExists may come here or at Close.
  virtual Result<std::unique_ptr<ObjectWriter>> OpenWriter(std::string_view key,
                                                           WriteMode mode) = 0;
  virtual Result<ListPage> List(const ListRequest& request) = 0;
  /// Removes an object; a missing one is success.
  virtual Status Delete(std::string_view key) = 0;
  /// Errors: kUnimplemented without Capabilities::presign.
  virtual Result<std::string> Presign(std::string_view key, std::chrono::seconds valid_for) = 0;
};

/// Reads a whole object (or a range) into memory. Errors: kNotFound; kResourceExhausted above
/// `size_bytes_max`.
Result<std::string> ReadObject(ObjectStore& store, std::string_view key,
                               uint64_t size_bytes_max = 256ULL << 20,
                               std::optional<ByteRange> range = std::nullopt);
/// Writes a whole object. Errors: as OpenWriter and Close.
Result<ObjectMeta> WriteObject(ObjectStore& store, std::string_view key, std::string_view bytes,
                               WriteMode mode);

/// "<base_uri>/<key>": how files are named in Iceberg metadata and in the engine.
std::string UriOf(const ObjectStore& store, std::string_view key);
/// The key behind a URI of this store ("file:/x", "file:///x" and "/x" are one name).
/// Errors: kInvalidArgument when the URI is outside the store.
Result<std::string> KeyOf(const ObjectStore& store, std::string_view uri);

}  // namespace tarn::storage
