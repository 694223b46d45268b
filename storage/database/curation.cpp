#include "storage/database/curation.h"

#include <algorithm>

namespace stepladder {

std::vector<std::string> tags_from(const std::string& text) {
  std::vector<std::string> tags;
  std::string tag;
  const auto take = [&] {
    if (!tag.empty() && std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(tag);
    tag.clear();
  };
  for (const char c : text) {
    if (c == ',' || c == ' ' || c == '\t' || c == '\n') {
      take();
    } else {
      tag += c;
    }
  }
  take();
  return tags;
}

std::string tags_text(const std::vector<std::string>& tags) {
  std::string text;
  for (const std::string& tag : tags) text += (text.empty() ? "" : ", ") + tag;
  return text;
}

}  // namespace stepladder
