#include "storage/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace stepladder {
namespace {

TEST(Mailbox, drains_in_the_order_of_posting) {
  Mailbox<int> mailbox;
  EXPECT_TRUE(mailbox.drain().empty());
  for (const int value : {3, 1, 2}) mailbox.post(value);
  EXPECT_EQ(mailbox.drain(), (std::vector{3, 1, 2}));
  EXPECT_TRUE(mailbox.drain().empty());
}

TEST(Mailbox, a_post_wakes_the_reader) {
  Mailbox<int> mailbox;
  std::thread poster([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    mailbox.post(7);
  });
  EXPECT_EQ(mailbox.wait_and_drain(std::chrono::minutes(1)), std::vector{7});
  poster.join();
}

TEST(Mailbox, closing_wakes_the_reader_and_loses_nothing) {
  Mailbox<int> mailbox;
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    mailbox.close();
  });
  EXPECT_TRUE(mailbox.wait_and_drain(std::chrono::minutes(1)).empty());
  closer.join();
  EXPECT_TRUE(mailbox.closed());
  mailbox.post(1);
  EXPECT_EQ(mailbox.wait_and_drain(std::chrono::minutes(1)), std::vector{1});
}

TEST(Mailbox, patience_ends) {
  Mailbox<int> mailbox;
  EXPECT_TRUE(mailbox.wait_and_drain(std::chrono::milliseconds(1)).empty());
  EXPECT_FALSE(mailbox.closed());
}

}  // namespace
}  // namespace stepladder
