// What every ObjectStore promises, as tests: instantiate ObjectStoreContract with a way to make an
// empty store.
//
//   INSTANTIATE_TEST_SUITE_P(Memory, ObjectStoreContract, ::testing::Values(&MakeMemoryStore));
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tarn/storage/object_store.h"
#include "test/support/matchers.h"

namespace tarn::storage {

/// Makes an empty store; what it stands on lives as long as the pointer.
using StoreFactory = std::shared_ptr<ObjectStore> (*)();

/// A store, and where the server behind it is known to fall short.
struct StoreCase {
  StoreCase(StoreFactory factory,  // NOLINT(google-explicit-constructor)
            std::vector<std::string> mistaken = {})
      : make(factory), mistaken_keys(std::move(mistaken)) {}
  StoreFactory make;
  std::vector<std::string> mistaken_keys;  // Taken for others.
};

class ObjectStoreContract : public ::testing::TestWithParam<StoreCase> {
 protected:
  void Put(std::string_view key, std::string_view bytes) {
    ASSERT_OK(WriteObject(*store_, key, bytes, WriteMode::kOverwrite));
  }

  // All keys with `prefix`, listed `limit` at a time.
  std::vector<std::string> Keys(const std::string& prefix, size_t limit = 1000,
                                const std::string& start_after = {}) {
    std::vector<std::string> keys;
    ListRequest request{.prefix = prefix, .start_after = start_after, .limit = limit};
    for (bool more = true; more;) {
      const Result<ListPage> page = store_->List(request);
      EXPECT_OK(page);
      if (!page.ok()) {
        return keys;
      }
      EXPECT_LE(page->objects.size(), limit);
      EXPECT_TRUE(page->objects.size() == limit || !page->truncated);
      for (const ObjectMeta& object : page->objects) {
        keys.push_back(object.key);
      }
      more = page->truncated;
      request.start_after = keys.empty() ? std::string() : keys.back();
    }
    return keys;
  }

  std::shared_ptr<ObjectStore> store_ = GetParam().make();
};

TEST_P(ObjectStoreContract, ReadsBackWhatWasWritten) {
  const std::string bytes("zero\0and\xFF", 9);
  ASSERT_OK_AND_ASSIGN(const ObjectMeta written,
                       WriteObject(*store_, "a/b/c.bin", bytes, WriteMode::kOverwrite));
  EXPECT_EQ(written.key, "a/b/c.bin");
  EXPECT_EQ(written.size_bytes, 9u);
  EXPECT_THAT(ReadObject(*store_, "a/b/c.bin"), IsOkAndHolds(bytes));
  ASSERT_OK_AND_ASSIGN(const ObjectMeta head, store_->Head("a/b/c.bin"));
  // What a store in the network answers to a write may carry another moment of the same write.
  EXPECT_LE(std::chrono::abs(head.modified - written.modified), std::chrono::seconds(2));
  EXPECT_EQ(head.key, written.key);
  EXPECT_EQ(head.size_bytes, written.size_bytes);
  EXPECT_EQ(head.etag, written.etag);
  ASSERT_OK_AND_ASSIGN(const auto reader, store_->OpenReader("a/b/c.bin"));
  EXPECT_EQ(reader->meta(), head);
}

TEST_P(ObjectStoreContract, EmptyObjectsExist) {
  Put("empty", "");
  EXPECT_THAT(ReadObject(*store_, "empty"), IsOkAndHolds(std::string()));
  EXPECT_THAT(Keys(""), ::testing::ElementsAre("empty"));
}

TEST_P(ObjectStoreContract, MissingObjectsAreNotFound) {
  Put("a/b", "x");
  for (const char* key : {"b", "a", "a/c", "a/b/c", "a/b/c/d"}) {
    EXPECT_THAT(store_->Head(key), FailsWith(ErrorCode::kNotFound, std::string("\"") + key));
    EXPECT_THAT(store_->OpenReader(key), Fails(ErrorCode::kNotFound)) << key;
    EXPECT_OK(store_->Delete(key));
  }
  EXPECT_THAT(Keys(""), ::testing::ElementsAre("a/b"));
}

TEST_P(ObjectStoreContract, BadKeysAreRefusedEverywhere) {
  const std::string long_key = std::string(200, 'a') + "/" + std::string(200, 'b') + "/" +
                               std::string(200, 'c') + "/" + std::string(200, 'd') + "/" +
                               std::string(221, 'e');
  ASSERT_EQ(long_key.size(), 1025u);
  for (const std::string& key :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("."),
        std::string("../a"), std::string("a/.."), std::string("a/./b"), std::string("a\0b", 3),
        std::string("a\xFF"), std::string("\xED\xA0\x80"), long_key}) {
    EXPECT_THAT(store_->Head(key), Fails(ErrorCode::kInvalidArgument)) << key;
    EXPECT_THAT(store_->OpenReader(key), Fails(ErrorCode::kInvalidArgument)) << key;
    EXPECT_THAT(store_->OpenWriter(key, WriteMode::kOverwrite), Fails(ErrorCode::kInvalidArgument))
        << key;
    EXPECT_THAT(store_->Delete(key), Fails(ErrorCode::kInvalidArgument)) << key;
  }
  Put(long_key.substr(0, 1024), "fits");
  EXPECT_THAT(ReadObject(*store_, long_key.substr(0, 1024)), IsOkAndHolds(std::string("fits")));
}

TEST_P(ObjectStoreContract, KeysAreTakenByTheByte) {
  std::vector<std::string> keys = {
      "%2F",        "*?[x]{y}",  "...",      ".hidden",         "A", "a", "a b", "a\\b", "a\nb",
      "a.tmp/.tmp", "e\xCC\x81", "\xC3\xA9", "\xF0\x9F\x98\x80"};
  for (const std::string& mistaken : GetParam().mistaken_keys) {
    std::erase(keys, mistaken);
  }
  for (const std::string& key : keys) {
    Put(key, key);
  }
  std::vector<std::string> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(Keys(""), sorted);
  for (const std::string& key : keys) {
    EXPECT_THAT(ReadObject(*store_, key), IsOkAndHolds(key));
    EXPECT_THAT(KeyOf(*store_, UriOf(*store_, key)), IsOkAndHolds(key));
  }
}

TEST_P(ObjectStoreContract, NothingIsVisibleBeforeClose) {
  Put("kept", "before");
  {
    ASSERT_OK_AND_ASSIGN(const auto writer, store_->OpenWriter("x/new", WriteMode::kOverwrite));
    ASSERT_OK_AND_ASSIGN(const auto over, store_->OpenWriter("kept", WriteMode::kOverwrite));
    EXPECT_OK(writer->Write("half"));
    EXPECT_OK(over->Write("after"));
    EXPECT_THAT(store_->Head("x/new"), Fails(ErrorCode::kNotFound));
    EXPECT_THAT(Keys(""), ::testing::ElementsAre("kept"));
    over->Abort();
    over->Abort();
  }
  EXPECT_THAT(Keys(""), ::testing::ElementsAre("kept"));
  EXPECT_THAT(ReadObject(*store_, "kept"), IsOkAndHolds(std::string("before")));
}

TEST_P(ObjectStoreContract, AnEndedWriterRefusesMore) {
  ASSERT_OK_AND_ASSIGN(const auto closed, store_->OpenWriter("a", WriteMode::kOverwrite));
  EXPECT_OK(closed->Write("1"));
  EXPECT_OK(closed->Close());
  EXPECT_THAT(closed->Write("2"), Fails(ErrorCode::kFailedPrecondition));
  EXPECT_THAT(closed->Close(), Fails(ErrorCode::kFailedPrecondition));
  closed->Abort();
  EXPECT_THAT(ReadObject(*store_, "a"), IsOkAndHolds(std::string("1")));
  ASSERT_OK_AND_ASSIGN(const auto aborted, store_->OpenWriter("b", WriteMode::kOverwrite));
  aborted->Abort();
  EXPECT_THAT(aborted->Write("2"), Fails(ErrorCode::kFailedPrecondition));
  EXPECT_THAT(aborted->Close(), Fails(ErrorCode::kFailedPrecondition));
  EXPECT_THAT(Keys(""), ::testing::ElementsAre("a"));
}

TEST_P(ObjectStoreContract, PiecesAreJoinedInOrder) {
  ASSERT_OK_AND_ASSIGN(const auto writer, store_->OpenWriter("a", WriteMode::kOverwrite));
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    const std::string piece(static_cast<size_t>(i), static_cast<char>('a' + i % 26));
    EXPECT_OK(writer->Write(piece));
    expected += piece;
  }
  EXPECT_OK(writer->Close());
  EXPECT_THAT(ReadObject(*store_, "a"), IsOkAndHolds(expected));
}

TEST_P(ObjectStoreContract, OverwritingChangesTheEtagAndOpenReadersKeepTheOldBytes) {
  ASSERT_OK_AND_ASSIGN(const ObjectMeta first,
                       WriteObject(*store_, "a", "one", WriteMode::kOverwrite));
  ASSERT_OK_AND_ASSIGN(const auto reader, store_->OpenReader("a"));
  ASSERT_OK_AND_ASSIGN(const ObjectMeta second,
                       WriteObject(*store_, "a", "two", WriteMode::kOverwrite));
  if (store_->capabilities().etag) {
    EXPECT_NE(first.etag, second.etag);
    EXPECT_FALSE(first.etag.empty());
  }
  EXPECT_THAT(ReadObject(*store_, "a"), IsOkAndHolds(std::string("two")));
  std::string bytes(3, '\0');
  EXPECT_THAT(reader->ReadAt(0, 3, bytes.data()), IsOkAndHolds(size_t{3}));
  EXPECT_EQ(bytes, "one");
}

TEST_P(ObjectStoreContract, PutIfAbsentKeepsTheFirst) {
  if (!store_->capabilities().put_if_absent) {
    EXPECT_THAT(store_->OpenWriter("a", WriteMode::kPutIfAbsent), Fails(ErrorCode::kUnimplemented));
    return;
  }
  ASSERT_OK_AND_ASSIGN(const auto late, store_->OpenWriter("x/a", WriteMode::kPutIfAbsent));
  EXPECT_OK(late->Write("late"));
  EXPECT_OK(WriteObject(*store_, "x/a", "first", WriteMode::kPutIfAbsent));
  EXPECT_THAT(late->Close(), FailsWith(ErrorCode::kAlreadyExists, "x/a"));
  EXPECT_THAT(WriteObject(*store_, "x/a", "third", WriteMode::kPutIfAbsent),
              Fails(ErrorCode::kAlreadyExists));
  EXPECT_THAT(ReadObject(*store_, "x/a"), IsOkAndHolds(std::string("first")));
  EXPECT_OK(store_->Delete("x/a"));
  EXPECT_OK(WriteObject(*store_, "x/a", "again", WriteMode::kPutIfAbsent));
}

TEST_P(ObjectStoreContract, OfManyPuttersOneWins) {
  if (!store_->capabilities().put_if_absent) {
    return;
  }
  for (int round = 0; round < 20; ++round) {
    const std::string key = "race/" + std::to_string(round) + "/a";
    std::atomic<int> wins{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto put = WriteObject(*store_, key, std::to_string(i), WriteMode::kPutIfAbsent);
        wins += put.ok() ? 1 : 0;
        EXPECT_TRUE(put.ok() || put.status().code() == ErrorCode::kAlreadyExists)
            << put.status().ToString();
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(wins, 1);
  }
}

TEST_P(ObjectStoreContract, RangesAreCutAtTheEnd) {
  Put("a", "0123456789");
  EXPECT_THAT(ReadObject(*store_, "a", 100, ByteRange{2, 3}), IsOkAndHolds(std::string("234")));
  EXPECT_THAT(ReadObject(*store_, "a", 100, ByteRange{8, 99}), IsOkAndHolds(std::string("89")));
  EXPECT_THAT(ReadObject(*store_, "a", 100, ByteRange{10, 1}), IsOkAndHolds(std::string()));
  EXPECT_THAT(ReadObject(*store_, "a", 100, ByteRange{UINT64_MAX, UINT64_MAX}),
              IsOkAndHolds(std::string()));
  EXPECT_THAT(ReadObject(*store_, "a", 9), FailsWith(ErrorCode::kResourceExhausted, "\"a\""));
  ASSERT_OK_AND_ASSIGN(const auto reader, store_->OpenReader("a"));
  char byte = '\0';
  EXPECT_THAT(reader->ReadAt(9, 1, &byte), IsOkAndHolds(size_t{1}));
  EXPECT_EQ(byte, '9');
  EXPECT_THAT(reader->ReadAt(10, 1, &byte), IsOkAndHolds(size_t{0}));
  EXPECT_THAT(reader->ReadAt(0, 0, &byte), IsOkAndHolds(size_t{0}));
}

TEST_P(ObjectStoreContract, ListsInByteOrderAcrossFolders) {
  // '-' sorts before '/', '0' after it: folders must not be listed before or after their names.
  const std::vector<std::string> keys = {"a-b", "a/b", "a/b-/x", "a/b/c", "a/b0", "a0", "b"};
  std::vector<std::string> stored;
  for (const std::string& key : keys) {
    if (key != "a/b") {
      Put(key, "x");
      stored.push_back(key);
    }
  }
  for (const size_t limit : {1, 2, 3, 100}) {
    EXPECT_EQ(Keys("", limit), stored) << limit;
  }
  EXPECT_THAT(Keys("a/"), ::testing::ElementsAre("a/b-/x", "a/b/c", "a/b0"));
  EXPECT_THAT(Keys("a/b"), ::testing::ElementsAre("a/b-/x", "a/b/c", "a/b0"));
  EXPECT_THAT(Keys("a/b/"), ::testing::ElementsAre("a/b/c"));
  EXPECT_THAT(Keys("a"), ::testing::ElementsAre("a-b", "a/b-/x", "a/b/c", "a/b0", "a0"));
  EXPECT_THAT(Keys("c"), ::testing::IsEmpty());
  EXPECT_THAT(Keys("a/b/c/"), ::testing::IsEmpty());
  EXPECT_THAT(Keys("a//"), ::testing::IsEmpty());
  EXPECT_THAT(Keys("../"), ::testing::IsEmpty());
  EXPECT_THAT(Keys("a/../"), ::testing::IsEmpty());
}

TEST_P(ObjectStoreContract, StartAfterNeedNotBeAKey) {
  for (const char* key : {"a/1", "a/2/x", "a/2/y", "a/3", "b"}) {
    Put(key, "x");
  }
  EXPECT_THAT(Keys("", 10, "a/2"), ::testing::ElementsAre("a/2/x", "a/2/y", "a/3", "b"));
  EXPECT_THAT(Keys("", 10, "a/2/"), ::testing::ElementsAre("a/2/x", "a/2/y", "a/3", "b"));
  EXPECT_THAT(Keys("", 10, "a/2/x"), ::testing::ElementsAre("a/2/y", "a/3", "b"));
  EXPECT_THAT(Keys("", 10, "a/2/\xF4\x8F\xBF\xBF"), ::testing::ElementsAre("a/3", "b"));
  EXPECT_THAT(Keys("a/", 10, "a/3"), ::testing::IsEmpty());
  EXPECT_THAT(Keys("a/", 10, "A"), ::testing::ElementsAre("a/1", "a/2/x", "a/2/y", "a/3"));
  EXPECT_THAT(Keys("", 10, "zzz"), ::testing::IsEmpty());
}

TEST_P(ObjectStoreContract, PageLimitsAreChecked) {
  EXPECT_THAT(store_->List({.prefix = {}, .start_after = {}, .limit = 0}),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(store_->List({.prefix = {}, .start_after = {}, .limit = 10'001}),
              Fails(ErrorCode::kInvalidArgument));
}

TEST_P(ObjectStoreContract, ListsRandomTreesAsASortedSetWould) {
  uint64_t seed = 20260131;
  const auto next = [&seed](uint64_t below) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % below;
  };
  std::vector<std::string> keys;
  for (int i = 0; i < 120; ++i) {
    std::string key;
    for (uint64_t level = next(3); level > 0; --level) {
      key += std::string("d") + "-./0a"[next(2)] + std::to_string(next(4)) + "/";
    }
    // Names of files end with '#', so that none is a folder too.
    key += std::string(1, "!-.0Az~"[next(7)]) + std::to_string(next(5)) + "#";
    Put(key, key);
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const size_t limit : {1, 7, 1000}) {
    EXPECT_EQ(Keys("", limit), keys) << limit;
  }
  for (size_t i = 0; i < keys.size(); i += 5) {
    EXPECT_EQ(
        Keys("", 9, keys[i]),
        std::vector<std::string>(keys.begin() + static_cast<std::ptrdiff_t>(i) + 1, keys.end()));
  }
}

TEST_P(ObjectStoreContract, DeletedObjectsAreGoneAndTheirPlaceIsFree) {
  Put("a/b/c", "x");
  Put("a/d", "y");
  EXPECT_OK(store_->Delete("a/b/c"));
  EXPECT_OK(store_->Delete("a/b/c"));
  EXPECT_THAT(store_->Head("a/b/c"), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(Keys(""), ::testing::ElementsAre("a/d"));
  Put("a/b", "now an object");
  EXPECT_THAT(Keys(""), ::testing::ElementsAre("a/b", "a/d"));
}

TEST_P(ObjectStoreContract, WritersAndDeletersOfOneFolderDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this, i] {
      const std::string key = "shared/deep/" + std::to_string(i);
      for (int round = 0; round < 60; ++round) {
        EXPECT_OK(WriteObject(*store_, key, "x", WriteMode::kOverwrite));
        EXPECT_OK(store_->Head(key));
        EXPECT_OK(store_->Delete(key));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(Keys(""), ::testing::IsEmpty());
}

TEST_P(ObjectStoreContract, ReadersMayBeUsedByManyThreads) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) {
    bytes += static_cast<char>('a' + i % 26);
  }
  Put("a", bytes);
  ASSERT_OK_AND_ASSIGN(const auto reader, store_->OpenReader("a"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (size_t offset = i; offset + 100 < bytes.size(); offset += 997) {
        std::string part(100, '\0');
        EXPECT_THAT(reader->ReadAt(offset, part.size(), part.data()), IsOkAndHolds(size_t{100}));
        EXPECT_EQ(part, bytes.substr(offset, 100));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_P(ObjectStoreContract, PresignSaysWhenThereIsNone) {
  Put("a", "x");
  const Result<std::string> link = store_->Presign("a", std::chrono::seconds(60));
  if (store_->capabilities().presign) {
    EXPECT_OK(link);
  } else {
    EXPECT_THAT(link, Fails(ErrorCode::kUnimplemented));
  }
}

}  // namespace tarn::storage
