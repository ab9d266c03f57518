// Uevents over a socket that the test opens, and messages as the kernel sends them.

#include "perfring/wait/uevents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfring::internal {
namespace {

using namespace std::string_view_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Captured from a live kernel.
constexpr std::string_view kOffline =
    "offline@/devices/system/cpu/cpu1\0ACTION=offline\0DEVPATH=/devices/system/cpu/cpu1\0"
    "SUBSYSTEM=cpu\0SEQNUM=1234\0"sv;
constexpr std::string_view kOnline =
    "online@/devices/system/cpu/cpu1\0ACTION=online\0DEVPATH=/devices/system/cpu/cpu1\0"
    "SUBSYSTEM=cpu\0SEQNUM=1235\0"sv;

TEST(ParseUeventTest, ParsesCpuHotplugMessages) {
  EXPECT_EQ(parse_uevent(kOffline), (CpuChange{1, false}));
  EXPECT_EQ(parse_uevent(kOnline), (CpuChange{1, true}));
  EXPECT_EQ(parse_uevent("online@/devices/system/cpu/cpu4095"), (CpuChange{4095, true}));
}

TEST(ParseUeventTest, OtherMessagesAreNoCpuChange) {
  for (const std::string_view other :
       {""sv, "\0"sv, "online@/devices/system/cpu/cpu"sv, "online@/devices/system/cpu/cpu1x"sv,
        "online@/devices/system/cpu/cpu-1"sv, "online@/devices/system/cpu/cpu99999999999"sv,
        "online@/devices/system/memory/memory1"sv, "add@/devices/system/cpu/cpu1"sv,
        "xonline@/devices/system/cpu/cpu1"sv, "online@/devices/system/cpu/cpu1/cache"sv,
        "ACTION=online\0online@/devices/system/cpu/cpu1"sv}) {
    EXPECT_EQ(parse_uevent(other), std::nullopt) << other;
  }
}

class UeventsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    uevents_.emplace(os::Fd{ends[0]});
    sends_ = os::Fd{ends[1]};
  }
  void send(std::string_view message) {
    ASSERT_EQ(::send(sends_.get(), message.data(), message.size(), 0),
              static_cast<ssize_t>(message.size()));
  }
  std::vector<CpuChange> read() {
    std::vector<CpuChange> changes;
    EXPECT_TRUE(uevents_->read([&](CpuChange each) { changes.push_back(each); }));
    return changes;
  }
  std::optional<Uevents> uevents_;
  os::Fd sends_;
};

TEST_F(UeventsTest, AllMessagesAreReadInTheirOrder) {
  EXPECT_THAT(read(), IsEmpty());
  send(kOffline);
  send("");
  send("add@/devices/virtual/net/lo");
  send(kOnline);
  send(kOffline);
  EXPECT_THAT(read(), ElementsAre(CpuChange{1, false}, CpuChange{1, true}, CpuChange{1, false}));
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(UeventsTest, ALongMessageIsCut) {
  send(std::string{kOnline} + std::string(60'000, 'x'));
  send(kOffline);
  EXPECT_THAT(read(), ElementsAre(CpuChange{1, true}, CpuChange{1, false}));
}

TEST(UeventsOpenTest, OpenedSocketReadsWithoutBlocking) {
  auto uevents = Uevents::open();
  if (!uevents) GTEST_SKIP() << "no netlink socket: " << uevents.error().message();
  EXPECT_GE(uevents->fd(), 0);
  uevents->read([](CpuChange) {});
}

}  // namespace
}  // namespace perfring::internal
