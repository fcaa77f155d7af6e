#include "tarn/base/thread_name.h"

#include <pthread.h>

#include <array>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace tarn {
namespace {

std::string NameAfter(const std::string& wanted) {
  std::string found;
  std::thread([&] {
    NameThisThread(wanted);
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    found = name.data();
  }).join();
  return found;
}

TEST(ThreadNameTest, IsTheGivenOne) { EXPECT_EQ(NameAfter("landing"), "landing"); }

TEST(ThreadNameTest, LongNamesAreCut) {
  EXPECT_EQ(NameAfter("landing-of-all-orders"), "landing-of-all-");
}

}  // namespace
}  // namespace tarn
