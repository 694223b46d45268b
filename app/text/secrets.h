// Command lines as they may be stored: values that look like secrets are replaced by ***.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

// The arguments, separated by spaces. Hides the values of options and variables whose name says that they are secret
// (--api-key X, --token=X, WANDB_API_KEY=X, "Authorization: Bearer X"), also inside a shell's command; user and
// password of a URL; and values that have the form of a known service's token. Rather hides too much than too little.
std::string without_secrets(const std::vector<std::string>& arguments);

// The same, each argument on its own.
std::vector<std::string> each_without_secrets(const std::vector<std::string>& arguments);

// Whether a text, a program's source for example, holds a known service's token or a private key.
bool holds_token(std::string_view text);

}  // namespace stepladder
