// LibTorch's own process groups (c10d): a store through which processes find each other, and collectives among them.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "engine/processes/rendezvous.h"

namespace stepladder {

// The reason why this build cannot train with several processes on that kind of device; empty if it can.
std::string process_groups_note(at::DeviceType device);

// The store of the placement's descriptor, which no other user can open; else the one that rank 0 serves at the
// placement's address and the others join. `listening` is rank 0's socket, which that store takes over. It asks nobody
// for a password, so all who reach the address must be trusted. Blocks until rank 0 is there; throws after `patience`.
c10::intrusive_ptr<c10d::Store> join_store(const Placement& placement, ListeningSocket* listening,
                                           std::chrono::milliseconds patience);

// Collectives for tensors on the CPU and, if `device` is another (its process_groups_note is empty), for those on it:
// Gloo over TCP and NCCL. With a store of a descriptor they use loopback; else the network interface that leads to the
// placement's address or the one that GLOO_SOCKET_IFNAME, for NCCL else NCCL_SOCKET_IFNAME, names. Every rank must call
// this at the same time. A collective on the CPU that waits for longer than `patience` throws.
c10::intrusive_ptr<c10d::ProcessGroup> join_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const Placement& placement, at::DeviceType device,
                                                  std::chrono::milliseconds patience);

// Throws if a collective on that kind of device has failed or taken too long, since on a GPU it ends silently then.
// Results are valid only if this returns after waiting for the device.
void require_no_loss(c10d::ProcessGroup& group, at::DeviceType device);

// Call before the group is destroyed, `together` if all ranks do so; otherwise the connections are cut. Does nothing on
// a CPU.
void leave_group(c10d::ProcessGroup& group, at::DeviceType device, bool together) noexcept;

// The fate of the other ranks after a collective has thrown; nothing if they didn't cause the error.
enum class PeerLoss { connection_closed, no_answer };
std::optional<PeerLoss> peer_loss(const std::exception& error);

}  // namespace stepladder
