// How processes that train together find each other: what a launcher says through the environment, and the sockets that
// they meet on. Holds no torch.
#pragma once

#include <optional>
#include <string>

namespace stepladder {

// Where one process stands among those that train together. Rank 0 records the run; the others only compute.
struct Placement {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;  // among the processes of this machine: which of its GPUs
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  bool store_is_served = false;  // torchrun serves the store itself, rank 0 only joins it
  std::string attempt = "0";     // torchrun counts its restarts; keys of an earlier one must not be met

  bool operator==(const Placement&) const = default;
};

// From RANK and WORLD_SIZE (torchrun), else, where MASTER_ADDR is set too, from Open MPI's or Slurm's variables.
// Nothing where this process was started alone. Throws RecipeError for numbers that cannot be.
std::optional<Placement> placement_from_environment();

// Which of the GPUs in sight is this process's own: LOCAL_RANK's or, where its launcher shows each process just one
// (Slurm's --gpus-per-task), that one. Two processes that end up with the same GPU are refused by NCCL, by name.
// Nothing where there is none for it.
std::optional<int> gpu_of(const Placement& placement, int gpus_in_sight);

// A TCP socket that listens on one address only and is closed in child processes.
class ListeningSocket {
 public:
  // `port` 0 takes a free one. Throws std::runtime_error with a sentence.
  ListeningSocket(const std::string& host, int port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int port() const { return port_; }
  int release();  // the descriptor, which is then the caller's to close

 private:
  int descriptor_ = -1;
  int port_ = 0;
};

// The numeric address of this machine from which packets to `host` leave: loopback where `host` is loopback.
std::string address_towards(const std::string& host, int port);

// The network interface that has this numeric address: "lo" for 127.0.0.1. Throws std::runtime_error where none has.
std::string interface_of(const std::string& address);

}  // namespace stepladder
