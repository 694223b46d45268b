// Reads a launcher's variables (torchrun, Open MPI, Slurm; `launchers` lists them in order of preference) and opens the
// sockets and the memory file by which ranks meet. All ranks must resolve a host to the same address, hence IPv4 first.
#include "engine/processes/rendezvous.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "engine/recipe.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name, int low, int high) {
  const std::string text = variable(name);
  const auto value = parse_number<int>(text);
  if (!value || *value < low || *value > high) {
    throw RecipeError(
        name, "is '" + text + "', but must be a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return *value;
}

// The variables in which a launcher passes rank, size and local rank.
struct Launcher {
  const char* rank;
  const char* size;
  const char* local_rank;
  bool needs_address;  // without it, a run of one process sets the others too
};

constexpr std::array<Launcher, 3> launchers{{
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", false},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", true},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", true},
}};

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// Prefers IPv4: a name may have both kinds of addresses, and all processes must choose the same.
Addresses resolve(const std::string& host, int port, int type) {
  for (const int family : {AF_INET, AF_INET6}) {
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = type;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) == 0) return {found, ::freeaddrinfo};
  }
  throw std::runtime_error("MASTER_ADDR: the host '" + host + "' is unknown");
}

// The address that a socket is bound to.
sockaddr_storage bound_address(int descriptor, socklen_t& size) {
  sockaddr_storage address{};
  size = sizeof address;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

}  // namespace

std::optional<Placement> placement_from_environment() {
  for (const Launcher& launcher : launchers) {
    if (variable(launcher.rank).empty() || variable(launcher.size).empty()) continue;
    if (launcher.needs_address && variable("MASTER_ADDR").empty()) continue;
    Placement placement;
    placement.world_size = number(launcher.size, 1, 65'536);
    placement.rank = number(launcher.rank, 0, placement.world_size - 1);
    if (!variable(launcher.local_rank).empty()) placement.local_rank = number(launcher.local_rank, 0, 65'535);
    if (!variable("MASTER_ADDR").empty()) placement.master_addr = variable("MASTER_ADDR");
    if (!variable("MASTER_PORT").empty()) placement.master_port = number("MASTER_PORT", 1, 65'535);
    placement.store_is_served = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
    if (!variable("TORCHELASTIC_RESTART_COUNT").empty()) placement.attempt = variable("TORCHELASTIC_RESTART_COUNT");
    if (!variable(store_descriptor_variable).empty())
      placement.store_descriptor = number(store_descriptor_variable, 0, 1 << 20);
    return placement;
  }
  return std::nullopt;
}

std::optional<int> gpu_of(const Placement& placement, int gpus_in_sight) {
  if (placement.local_rank < gpus_in_sight) return placement.local_rank;
  return gpus_in_sight == 1 ? std::optional(0) : std::nullopt;
}

MemoryFile::MemoryFile() : descriptor_(::memfd_create("stepladder", MFD_CLOEXEC)) {
  if (descriptor_ < 0)
    throw std::runtime_error(std::string("the memory that the processes share cannot be created: ") +
                             std::strerror(errno));
}

MemoryFile::~MemoryFile() {
  ::close(descriptor_);
}

ListeningSocket::ListeningSocket(const std::string& host, int port) {
  const Addresses address = resolve(host, port, SOCK_STREAM);
  descriptor_ = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(descriptor_, address->ai_addr, address->ai_addrlen) != 0 || ::listen(descriptor_, SOMAXCONN) != 0) {
    const std::string why = std::strerror(errno);
    ::close(descriptor_);
    throw std::runtime_error("the processes cannot connect at " + host + ":" + std::to_string(port) + ": " + why);
  }
  socklen_t size = 0;
  const sockaddr_storage bound = bound_address(descriptor_, size);
  // The port is at the same offset in both families (RFC 3493, sections 3.3 and 3.4).
  port_ = ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int ListeningSocket::release() {
  return std::exchange(descriptor_, -1);
}

std::string address_towards(const std::string& host, int port) {
  const Addresses address = resolve(host, port, SOCK_DGRAM);
  const int descriptor = ::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  // Connecting a datagram socket sends nothing; it only looks up the route.
  const bool routed = ::connect(descriptor, address->ai_addr, address->ai_addrlen) == 0;
  socklen_t size = 0;
  const sockaddr_storage own = bound_address(descriptor, size);
  ::close(descriptor);
  std::array<char, NI_MAXHOST> text{};
  if (!routed || ::getnameinfo(reinterpret_cast<const sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0,
                               NI_NUMERICHOST) != 0)
    throw std::runtime_error("no network of this machine reaches " + host);
  return text.data();
}

std::string interface_of(const std::string& address) {
  ifaddrs* first = nullptr;
  ::getifaddrs(&first);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, ::freeifaddrs);
  for (const ifaddrs* one = first; one; one = one->ifa_next) {
    if (!one->ifa_addr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const auto size = static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    std::array<char, NI_MAXHOST> text{};
    ::getnameinfo(one->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
    if (address == text.data()) return one->ifa_name;
  }
  throw std::runtime_error("no network interface of this machine has the address " + address);
}

}  // namespace stepladder
