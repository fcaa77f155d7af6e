#include "test/support/temporary_directory.h"

#include <cstdlib>

#include "tarn/base/check.h"

namespace tarn {

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "tarn-test-XXXXXX").string();
  TARN_CHECK(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tarn
