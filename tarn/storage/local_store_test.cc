#include "tarn/storage/local_store.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "test/support/child_process.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::storage {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LocalStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<LocalStore> Open(LocalAccess access = LocalAccess::kReadWrite) {
    return LocalStore::Open({.root = root_, .access = access}).value();
  }
  static std::vector<std::string> Keys(ObjectStore& store, const std::string& prefix = {}) {
    const Result<ListPage> page = store.List({.prefix = prefix, .start_after = {}});
    EXPECT_OK(page);
    std::vector<std::string> keys;
    for (const ObjectMeta& object : page->objects) {
      keys.push_back(object.key);
    }
    return keys;
  }
  void MakeFile(const fs::path& path, std::string_view bytes = "x") const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << bytes;
  }
  [[nodiscard]] size_t TemporaryCount() const {
    return fs::exists(root_ / ".tmp")
               ? static_cast<size_t>(std::distance(fs::directory_iterator(root_ / ".tmp"), {}))
               : 0;
  }

  TemporaryDirectory directory_;
  const fs::path root_ = directory_.path() / "root";
};

TEST_F(LocalStoreTest, MakesItsRootAndNamesItByUri) {
  ASSERT_OK_AND_ASSIGN(const auto store, LocalStore::Open({.root = root_ / "x" / "y" / "."}));
  EXPECT_EQ(store->base_uri(), "file://" + (root_ / "x" / "y").string());
  EXPECT_EQ(store->root_path(), (root_ / "x" / "y").string());
  EXPECT_EQ(store->capabilities(),
            (Capabilities{.put_if_absent = true, .etag = true, .start_after = true}));
}

TEST_F(LocalStoreTest, RootsThatAreNoFoldersAreRefused) {
  MakeFile("file");
  EXPECT_THAT(LocalStore::Open({.root = root_ / "file"}),
              FailsWith(ErrorCode::kInvalidArgument, "not a folder"));
  EXPECT_THAT(LocalStore::Open({.root = root_ / "no", .access = LocalAccess::kReadOnly}),
              FailsWith(ErrorCode::kNotFound, "/no"));
  EXPECT_THAT(LocalStore::Open({.root = ""}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_FALSE(LocalStore::Open({.root = root_ / "file" / "below"}).ok());
}

TEST_F(LocalStoreTest, ARootMayBeALink) {
  fs::create_directories(root_ / "real");
  fs::create_directory_symlink(root_ / "real", root_ / "link");
  ASSERT_OK_AND_ASSIGN(const auto store, LocalStore::Open({.root = root_ / "link"}));
  EXPECT_OK(WriteObject(*store, "a", "x", WriteMode::kOverwrite));
  EXPECT_TRUE(fs::exists(root_ / "real" / "a"));
  EXPECT_EQ(store->root_path(), (root_ / "real").string());
}

TEST_F(LocalStoreTest, TemporaryFilesAreHiddenReservedAndGoneAfterwards) {
  const auto store = Open();
  EXPECT_FALSE(fs::exists(root_ / ".tmp"));
  ASSERT_OK_AND_ASSIGN(auto writer, store->OpenWriter("a/b", WriteMode::kOverwrite));
  EXPECT_EQ(TemporaryCount(), 1u);
  EXPECT_THAT(Keys(*store), IsEmpty());
  EXPECT_THAT(Keys(*store, ".tmp/"), IsEmpty());
  EXPECT_FALSE(fs::exists(root_ / "a"));
  EXPECT_OK(writer->Close());
  EXPECT_EQ(TemporaryCount(), 0u);
  for (const char* key : {".tmp", ".tmp/x"}) {
    EXPECT_THAT(store->OpenWriter(key, WriteMode::kOverwrite),
                FailsWith(ErrorCode::kInvalidArgument, "reserved"));
    EXPECT_THAT(store->Head(key), Fails(ErrorCode::kInvalidArgument));
  }
  EXPECT_OK(WriteObject(*store, ".tmpfile", "x", WriteMode::kOverwrite));
  EXPECT_OK(WriteObject(*store, "a/.tmp", "x", WriteMode::kOverwrite));
  EXPECT_THAT(Keys(*store), ElementsAre(".tmpfile", "a/.tmp", "a/b"));
  EXPECT_THAT(Keys(*store, ".tmp"), ElementsAre(".tmpfile"));
}

TEST_F(LocalStoreTest, OpenRemovesWhatDeadWritersLeftAndSparesTheLiving) {
  const auto store = Open();
  ASSERT_OK_AND_ASSIGN(const auto living, store->OpenWriter("living", WriteMode::kOverwrite));
  EXPECT_OK(living->Write("x"));
  MakeFile(".tmp/left-by-a-crash");
  EXPECT_EQ(TemporaryCount(), 2u);
  const auto second = Open();
  EXPECT_EQ(TemporaryCount(), 1u);
  EXPECT_OK(living->Close());
  EXPECT_THAT(Keys(*second), ElementsAre("living"));
}

TEST_F(LocalStoreTest, AWriterSurvivesTheLossOfItsTemporaryFolderOnlyWithAnError) {
  const auto store = Open();
  ASSERT_OK_AND_ASSIGN(const auto writer, store->OpenWriter("a/b", WriteMode::kOverwrite));
  fs::remove_all(root_ / ".tmp");
  EXPECT_THAT(writer->Close(), Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(Keys(*store), IsEmpty());
  EXPECT_OK(WriteObject(*store, "a/b", "x", WriteMode::kOverwrite));
}

TEST_F(LocalStoreTest, ACrashBeforeTheMoveLeavesTheOldStateAndAfterItTheNew) {
  EXPECT_OK(WriteObject(*Open(), "d/a", "old", WriteMode::kOverwrite));
  const auto write = [this] {
    static_cast<void>(WriteObject(*Open(), "d/a", "new", WriteMode::kOverwrite));
  };
  EXPECT_TRUE(DiesAtCrashPoint("storage-before-publish", write));
  EXPECT_EQ(TemporaryCount(), 1u);
  EXPECT_THAT(ReadObject(*Open(), "d/a"), IsOkAndHolds(std::string("old")));
  EXPECT_EQ(TemporaryCount(), 0u);
  EXPECT_TRUE(DiesAtCrashPoint("storage-after-rename", write));
  EXPECT_THAT(ReadObject(*Open(), "d/a"), IsOkAndHolds(std::string("new")));
  EXPECT_EQ(TemporaryCount(), 0u);
}

TEST_F(LocalStoreTest, LongSegmentsArePermanentErrors) {
  const auto store = Open();
  const std::string fits(255, 'a');
  EXPECT_OK(WriteObject(*store, "d/" + fits + "/" + fits, "x", WriteMode::kOverwrite));
  EXPECT_THAT(ReadObject(*store, "d/" + fits + "/" + fits), IsOkAndHolds(std::string("x")));
  EXPECT_EQ(Keys(*store).size(), 1u);
  const std::string cjk = [] {
    std::string text;
    for (int i = 0; i < 86; ++i) {
      text += "\xE4\xB8\xAD";
    }
    return text;
  }();
  for (const std::string& segment : {std::string(256, 'a'), std::string(600, 'a'), cjk}) {
    for (const std::string& key : {segment, "d/" + segment, segment + "/x"}) {
      EXPECT_THAT(store->OpenWriter(key, WriteMode::kOverwrite),
                  FailsWith(ErrorCode::kInvalidArgument, "255 bytes"));
      EXPECT_THAT(store->Head(key), Fails(ErrorCode::kInvalidArgument));
    }
  }
}

TEST_F(LocalStoreTest, AnObjectAndAFolderCannotShareAName) {
  const auto store = Open();
  EXPECT_OK(WriteObject(*store, "a/b", "x", WriteMode::kOverwrite));
  for (const WriteMode mode : {WriteMode::kOverwrite, WriteMode::kPutIfAbsent}) {
    EXPECT_THAT(WriteObject(*store, "a", "y", mode),
                FailsWith(ErrorCode::kFailedPrecondition, "\"a\": a folder has this name"));
    EXPECT_THAT(WriteObject(*store, "a/b/c", "y", mode),
                FailsWith(ErrorCode::kFailedPrecondition, "is an object, not a folder"));
  }
  EXPECT_OK(store->Delete("a"));
  EXPECT_THAT(Keys(*store), ElementsAre("a/b"));
  EXPECT_EQ(TemporaryCount(), 0u);
}

TEST_F(LocalStoreTest, LinksAreNotFollowed) {
  const auto store = Open();
  fs::create_directories(directory_.path() / "outside");
  std::ofstream(directory_.path() / "outside" / "secret") << "secret";
  fs::create_directory_symlink(directory_.path() / "outside", root_ / "out");
  fs::create_symlink(directory_.path() / "outside" / "secret", root_ / "file");
  MakeFile("in/real");
  fs::create_directory_symlink(root_ / "in", root_ / "inner");
  for (const char* key : {"out/secret", "file", "inner/real"}) {
    EXPECT_THAT(store->Head(key), Fails(ErrorCode::kNotFound)) << key;
    EXPECT_THAT(store->OpenReader(key), Fails(ErrorCode::kNotFound)) << key;
  }
  EXPECT_THAT(Keys(*store), ElementsAre("in/real"));
  EXPECT_THAT(Keys(*store, "out/"), IsEmpty());
  EXPECT_OK(store->Delete("out/secret"));
  EXPECT_TRUE(fs::exists(directory_.path() / "outside" / "secret"));
  EXPECT_THAT(WriteObject(*store, "out/new", "x", WriteMode::kOverwrite),
              Fails(ErrorCode::kFailedPrecondition));
  EXPECT_FALSE(fs::exists(directory_.path() / "outside" / "new"));
  // A link with the name of an object is replaced, not written through.
  EXPECT_OK(WriteObject(*store, "file", "mine", WriteMode::kOverwrite));
  EXPECT_THAT(ReadObject(*store, "file"), IsOkAndHolds(std::string("mine")));
  std::string outside;
  std::ifstream(directory_.path() / "outside" / "secret") >> outside;
  EXPECT_EQ(outside, "secret");
}

TEST_F(LocalStoreTest, PipesAndSocketsAreNoObjects) {
  const auto store = Open();
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(store->Head("pipe"), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(store->OpenReader("pipe"), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(Keys(*store), IsEmpty());
}

TEST_F(LocalStoreTest, DeleteRemovesEmptyFoldersUnlessTheyAreSomebodyElses) {
  const auto store = Open();
  EXPECT_OK(WriteObject(*store, "a/b/c/d", "x", WriteMode::kOverwrite));
  EXPECT_OK(WriteObject(*store, "a/e", "x", WriteMode::kOverwrite));
  EXPECT_OK(store->Delete("a/b/c/d"));
  EXPECT_FALSE(fs::exists(root_ / "a" / "b"));
  EXPECT_TRUE(fs::exists(root_ / "a"));
  ASSERT_OK_AND_ASSIGN(
      const auto keeping,
      LocalStore::Open({.root = root_, .empty_directories = EmptyDirectories::kKeep}));
  EXPECT_OK(keeping->Delete("a/e"));
  EXPECT_TRUE(fs::exists(root_ / "a"));
}

TEST_F(LocalStoreTest, AReaderKeepsTheSizeItOpenedWith) {
  const auto store = Open();
  MakeFile("log", "first");
  ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader("log"));
  std::ofstream(root_ / "log", std::ios::app) << "second";
  std::string bytes(100, '\0');
  EXPECT_THAT(reader->ReadAt(0, bytes.size(), bytes.data()), IsOkAndHolds(size_t{5}));
  ASSERT_OK_AND_ASSIGN(const ObjectMeta now, store->Head("log"));
  EXPECT_EQ(now.size_bytes, 11u);
  EXPECT_NE(now.etag, reader->meta().etag);
  fs::resize_file(root_ / "log", 2);
  EXPECT_THAT(reader->ReadAt(0, bytes.size(), bytes.data()), IsOkAndHolds(size_t{2}));
}

TEST_F(LocalStoreTest, ListDoesNotOpenFoldersThatItNeedNotRead) {
  MakeFile("2026/01/a");
  MakeFile("2026/02/a");
  MakeFile("2026/03/a");
  fs::permissions(directory_.path(), fs::perms::all);
  fs::permissions(root_ / "2026" / "01", fs::perms::none);
  EXPECT_TRUE(PassesUnprivileged([this] {
    const auto store = Open(LocalAccess::kReadOnly);
    // Reading the first folder would fail, so whoever succeeds has not read it.
    const ListRequest all;
    EXPECT_THAT(store->List(all), FailsWith(ErrorCode::kPermissionDenied, "2026/01/"));
    EXPECT_THAT(Keys(*store, "2026/02/"), ElementsAre("2026/02/a"));
    ASSERT_OK_AND_ASSIGN(const ListPage page,
                         store->List({.prefix = "2026/", .start_after = "2026/02/a"}));
    ASSERT_EQ(page.objects.size(), 1u);
    EXPECT_EQ(page.objects[0].key, "2026/03/a");
  }));
  fs::permissions(root_ / "2026" / "01", fs::perms::owner_all);
}

TEST_F(LocalStoreTest, FullDisksAndForbiddenFoldersAreClearErrors) {
  const auto store = Open();
  EXPECT_OK(WriteObject(*store, "kept", "x", WriteMode::kOverwrite));
  EXPECT_TRUE(PassesInChild([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_THAT(WriteObject(*store, "d/large", std::string(5000, 'x'), WriteMode::kOverwrite),
                FailsWith(ErrorCode::kResourceExhausted, "\"d/large\""));
    EXPECT_THAT(store->Head("d/large"), Fails(ErrorCode::kNotFound));
  }));
  EXPECT_EQ(TemporaryCount(), 0u);
  fs::permissions(directory_.path(), fs::perms::all);
  fs::permissions(root_ / "kept", fs::perms::owner_all);
  EXPECT_TRUE(PassesUnprivileged([&] {
    const auto reading = Open(LocalAccess::kReadOnly);
    EXPECT_OK(reading->Head("kept"));
    EXPECT_THAT(reading->OpenReader("kept"), FailsWith(ErrorCode::kPermissionDenied, "\"kept\""));
    EXPECT_THAT(WriteObject(*store, "d/new", "x", WriteMode::kOverwrite),
                FailsWith(ErrorCode::kPermissionDenied, "\"d/new\""));
    EXPECT_THAT(store->Delete("kept"), FailsWith(ErrorCode::kPermissionDenied, "\"kept\""));
  }));
}

TEST_F(LocalStoreTest, AReadOnlyStoreWritesNothing) {
  MakeFile("a/b", "bytes");
  MakeFile(".tmp/theirs");
  fs::permissions(directory_.path(), fs::perms::all);
  EXPECT_TRUE(PassesUnprivileged([this] {
    const auto store = Open(LocalAccess::kReadOnly);
    EXPECT_THAT(Keys(*store), ElementsAre(".tmp/theirs", "a/b"));
    EXPECT_THAT(ReadObject(*store, "a/b"), IsOkAndHolds(std::string("bytes")));
    EXPECT_THAT(store->OpenWriter("a/c", WriteMode::kOverwrite),
                FailsWith(ErrorCode::kPermissionDenied, "for reading only"));
    EXPECT_THAT(store->Delete("a/b"), Fails(ErrorCode::kPermissionDenied));
  }));
  EXPECT_TRUE(fs::exists(root_ / ".tmp" / "theirs"));
}

TEST_F(LocalStoreTest, NamesThatAreNoUtf8AreListedButHaveNoKey) {
  MakeFile("bad\xFF");
  const auto store = Open(LocalAccess::kReadOnly);
  EXPECT_THAT(Keys(*store), ElementsAre("bad\xFF"));
  EXPECT_THAT(store->Head("bad\xFF"), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(LocalStoreTest, ReadersFreshlyMadeFoldersAndFilesAgreeOnMeta) {
  const auto store = Open();
  ASSERT_OK_AND_ASSIGN(const ObjectMeta meta,
                       WriteObject(*store, "x/y", "abc", WriteMode::kPutIfAbsent));
  ASSERT_OK_AND_ASSIGN(const ListPage page, store->List({}));
  EXPECT_THAT(page.objects, ElementsAre(meta));
}

}  // namespace
}  // namespace tarn::storage
