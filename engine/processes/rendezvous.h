// Lets processes that train together find each other: by a launcher's environment variables, and by sockets. Needs no
// torch.
#pragma once

#include <optional>
#include <string>

namespace stepladder {

// The rank of one process among those that train together. Rank 0 records the run; the others only compute.
struct Placement {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;  // among the processes of this machine: which of its GPUs
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  bool store_is_served = false;  // torchrun serves the store, and rank 0 only joins it
  std::string attempt = "0";     // counts torchrun's restarts, so that keys of an earlier one are not read
  int store_descriptor = -1;     // of the MemoryFile that is the store; -1: the store is at the address

  bool operator==(const Placement&) const = default;
};

// The placement by RANK and WORLD_SIZE (torchrun), else, if MASTER_ADDR is set too, by Open MPI's or Slurm's variables.
// Nothing if this process was started alone. Throws RecipeError for impossible numbers.
std::optional<Placement> placement_from_environment();

// The visible GPU of this process: the one of LOCAL_RANK or, if its launcher shows each process just one (Slurm's
// --gpus-per-task), that one. Nothing if it has none. NCCL refuses two processes on one GPU and names it.
std::optional<int> gpu_of(const Placement& placement, int gpus_in_sight);

// The environment variable in which a worker gets store_descriptor.
inline constexpr const char* store_descriptor_variable = "STEPLADDER_STORE_DESCRIPTOR";

// A file without a name, in memory. Only processes that inherit its descriptor can open it, so no other user can read
// or write the messages between the processes of one machine; and nothing is left when they have exited.
class MemoryFile {
 public:
  MemoryFile();  // throws std::runtime_error with a sentence
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }  // closed in child processes that don't duplicate it

 private:
  int descriptor_ = -1;
};

// A TCP socket that listens on one address only and is closed in child processes.
class ListeningSocket {
 public:
  // `port` 0: any free one. Throws std::runtime_error with a sentence.
  ListeningSocket(const std::string& host, int port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int port() const { return port_; }
  int release();  // the descriptor, which the caller then closes

 private:
  int descriptor_ = -1;
  int port_ = 0;
};

// The numeric address of this machine from which packets to `host` leave: loopback if `host` is loopback.
std::string address_towards(const std::string& host, int port);

// The network interface that has this numeric address: "lo" for 127.0.0.1. Throws std::runtime_error if none has it.
std::string interface_of(const std::string& address);

}  // namespace stepladder
