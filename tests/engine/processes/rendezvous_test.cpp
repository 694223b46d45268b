#include "engine/processes/rendezvous.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "engine/recipe.h"

namespace stepladder {
namespace {

// The placement from only these variables.
std::optional<Placement> placement_with(const std::map<std::string, std::string>& variables) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
        "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT", "STEPLADDER_STORE_DESCRIPTOR"}) {
    const auto found = variables.find(name);
    found == variables.end() ? ::unsetenv(name) : ::setenv(name, found->second.c_str(), 1);
  }
  return placement_from_environment();
}

TEST(Rendezvous, AProcessHasTheGpuOfItsPlaceOrTheOneItSees) {
  EXPECT_EQ(gpu_of({.local_rank = 0}, 8), 0);
  EXPECT_EQ(gpu_of({.local_rank = 7}, 8), 7);
  EXPECT_EQ(gpu_of({.local_rank = 8}, 8), std::nullopt);
  EXPECT_EQ(gpu_of({.local_rank = 3}, 1), 0) << "its launcher shows it no other";
  EXPECT_EQ(gpu_of({.local_rank = 0}, 0), std::nullopt);
}

TEST(Placement, NoneWhereStartedAlone) {
  EXPECT_EQ(placement_with({}), std::nullopt);
  EXPECT_EQ(placement_with({{"RANK", "1"}}), std::nullopt);
  EXPECT_EQ(placement_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), std::nullopt);
}

TEST(Placement, OfTorchrun) {
  const auto placement = placement_with({{"RANK", "5"},
                                         {"WORLD_SIZE", "8"},
                                         {"LOCAL_RANK", "1"},
                                         {"MASTER_ADDR", "10.0.0.1"},
                                         {"MASTER_PORT", "1234"},
                                         {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                         {"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_EQ(placement, (Placement{.rank = 5,
                                  .world_size = 8,
                                  .local_rank = 1,
                                  .master_addr = "10.0.0.1",
                                  .master_port = 1234,
                                  .store_is_served = true,
                                  .attempt = "2"}));
}

TEST(Placement, OfOpenMpiAndSlurmWithAnAddress) {
  const Placement expected{.rank = 3, .world_size = 4, .local_rank = 1, .master_addr = "node0"};
  EXPECT_EQ(placement_with({{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"MASTER_ADDR", "node0"}}),
            expected);
  EXPECT_EQ(
      placement_with({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}, {"MASTER_ADDR", "node0"}}),
      expected);
}

TEST(Placement, NumbersThatCannotBeAreNamed) {
  try {
    placement_with({{"RANK", "4"}, {"WORLD_SIZE", "4"}});
    FAIL();
  } catch (const RecipeError& error) {
    EXPECT_STREQ(error.what(), "RANK: is '4', but must be a number from 0 to 3");
  }
  EXPECT_THROW(placement_with({{"RANK", "0"}, {"WORLD_SIZE", "two"}}), RecipeError);
  EXPECT_THROW(placement_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}), RecipeError);
  placement_with({});
}

TEST(Placement, OfAWorker) {
  const auto placement = placement_with({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"STEPLADDER_STORE_DESCRIPTOR", "3"}});
  EXPECT_EQ(placement, (Placement{.rank = 1, .world_size = 2, .store_descriptor = 3}));
  EXPECT_THROW(placement_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"STEPLADDER_STORE_DESCRIPTOR", "x"}}), RecipeError);
  placement_with({});
}

TEST(MemoryFile, HasNoNameAndIsClosedInChildren) {
  const MemoryFile file;
  EXPECT_EQ(::fcntl(file.descriptor(), F_GETFD), FD_CLOEXEC);
  struct stat facts = {};
  ASSERT_EQ(::fstat(file.descriptor(), &facts), 0);
  EXPECT_EQ(facts.st_nlink, 0u);
}

TEST(ListeningSocket, TakesAFreePortAndHoldsIt) {
  const ListeningSocket first("127.0.0.1", 0);
  EXPECT_GT(first.port(), 0);
  EXPECT_THROW(ListeningSocket("127.0.0.1", first.port()), std::runtime_error);
  ListeningSocket second("localhost", 0);
  EXPECT_NE(second.port(), first.port());
  EXPECT_EQ(::close(second.release()), 0);
}

TEST(AddressTowards, LoopbackStaysOnLoopback) {
  EXPECT_EQ(address_towards("127.0.0.1", 29500), "127.0.0.1");
  EXPECT_EQ(address_towards("localhost", 29500), "127.0.0.1");
  EXPECT_THROW(address_towards("no-such-host.invalid", 29500), std::runtime_error);
}

TEST(InterfaceOf, NamesTheOneThatHasTheAddress) {
  EXPECT_EQ(interface_of("127.0.0.1").substr(0, 2), "lo");      // "lo0" on some systems
  EXPECT_THROW(interface_of("192.0.2.1"), std::runtime_error);  // kept for documentation (RFC 5737)
}

}  // namespace
}  // namespace stepladder
