#ifdef STEPLADDER_GLOO
#define USE_C10D_GLOO
#endif

#include "engine/trainer/process_group.h"

#include <cstdlib>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace stepladder {

std::string process_groups_note(at::DeviceType device) {
  if (device != at::kCPU) return "this build has process groups for CPUs only (Gloo), not for GPUs (NCCL)";
#ifdef STEPLADDER_GLOO
  return "";
#else
  return "this build has no process groups: Gloo's headers (libgloo-dev) were not there";
#endif
}

c10::intrusive_ptr<c10d::Store> join_store(const Placement& placement, ListeningSocket* listening,
                                           std::chrono::milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(placement.master_port);
  options.isServer = listening != nullptr;
  options.waitWorkers = false;
  options.timeout = patience;
  if (listening) options.masterListenFd = static_cast<std::size_t>(listening->release());
  auto store = c10::make_intrusive<c10d::TCPStore>(placement.master_addr, options);
  return c10::make_intrusive<c10d::PrefixStore>("stepladder/" + placement.attempt, std::move(store));
}

#ifdef STEPLADDER_GLOO

c10::intrusive_ptr<c10d::ProcessGroup> join_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const Placement& placement, at::DeviceType device,
                                                  std::chrono::milliseconds patience) {
  using c10d::ProcessGroupGloo;
  const auto options = ProcessGroupGloo::Options::create(patience);
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(interface && *interface ? ProcessGroupGloo::createDeviceForInterface(interface)
                                                     : ProcessGroupGloo::createDeviceForHostname(address_towards(
                                                           placement.master_addr, placement.master_port)));
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, placement.rank, placement.world_size);
  group->setBackend(device, c10d::ProcessGroup::BackendType::GLOO,
                    c10::make_intrusive<ProcessGroupGloo>(store, placement.rank, placement.world_size, options));
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  return group;
}

std::optional<PeerLoss> peer_loss(const std::exception& error) {
  if (!dynamic_cast<const gloo::IoException*>(&error)) return std::nullopt;
  const bool timed_out = std::string_view(error.what()).find("Timed out") != std::string_view::npos;
  return timed_out ? PeerLoss::no_answer : PeerLoss::connection_closed;
}

#else

c10::intrusive_ptr<c10d::ProcessGroup> join_group(const c10::intrusive_ptr<c10d::Store>&, const Placement&,
                                                  at::DeviceType device, std::chrono::milliseconds) {
  throw std::runtime_error(process_groups_note(device));
}

std::optional<PeerLoss> peer_loss(const std::exception&) {
  return std::nullopt;
}

#endif

}  // namespace stepladder
