// The rules for texts of `doctor --share`; tests/cli/share_test.py looks at whole copies.
#include "storage/database/share.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(Share, PathsBecomeTheirLastPart) {
  EXPECT_EQ(without_paths("cannot read /home/me/data/book.txt: gone"), "cannot read book.txt: gone");
  EXPECT_EQ(without_paths("data ~/x/a.bin -> \"/home/me/b.bin\""), "data a.bin -> \"b.bin\"");
  EXPECT_EQ(without_paths("(file:///home/me/x) ../me/y C:\\Users\\me\\z.txt"), "(x) y z.txt");
  EXPECT_EQ(without_paths("https://wandb.example/me/project/"), "project");
  EXPECT_EQ(without_paths("/home/me/a/ and ~/b"), "a and b");
  for (const char* const kept :
       {"train/loss", "tok/s", "1 /s", "a: b, c", "", "/", "lr 1e-3 -> 3e-4", "nano on text.txt"})
    EXPECT_EQ(without_paths(kept), kept);
}

TEST(Share, WhatIsMarkedPrivateIsLeftOut) {
  EXPECT_EQ(without_private_part("private: ask Bob\nand Alice"), "");
  EXPECT_EQ(without_private_part("fast\n Private: ask Bob\nand Alice"), "fast");
  EXPECT_EQ(without_private_part("a private: matter\n"), "a private: matter\n");
  EXPECT_EQ(without_private_part(""), "");
  EXPECT_EQ(without_private_part("\n\n"), "\n\n");
}

}  // namespace
}  // namespace stepladder
