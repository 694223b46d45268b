// This machine, as `hello` and `report` describe it.
#pragma once

#include <string>
#include <vector>

#include "app/far/wire.h"

namespace stepladder::far {

std::string host_name();
std::string home_folder();  // of $HOME; "/" if there is none
std::string own_program();  // the path of this program's file

// The answer to `hello`. Makes the folder and tries whether it can be written.
Json hello(const std::string& folder);

// The answer to `report` without the GPUs. Bytes, and fractions of 1.
Json load_report(const std::string& folder);

// How to learn whether a logout ends running programs: the command, and its answer as `logout`.
std::vector<std::string> logout_question();
Json logout_in(const std::string& answer);

// How to learn about GPUs: the command, and its answer as `gpus`.
std::vector<std::string> gpu_question();
Json gpus_in(const std::string& answer);

}  // namespace stepladder::far
