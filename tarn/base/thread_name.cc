#include "tarn/base/thread_name.h"

#include <pthread.h>

#include <string>

namespace tarn {

namespace {
constexpr size_t kBytesMax = 15;  // Of the kernel; a longer name would be refused as a whole.
}

void NameThisThread(std::string_view name) {
  ::pthread_setname_np(::pthread_self(), std::string(name.substr(0, kBytesMax)).c_str());
}

}  // namespace tarn
