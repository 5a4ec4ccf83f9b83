// SPDX-License-Identifier: BSD-3-Clause
// Right after a file was closed, or written to, others read its bytes. Arguments: WAY [MIB_PER_RANK].
#include "setups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace {

long long expected_bytes, data_begin;

int last_value(int step, MPI_Offset n) { return 7000 + step * 16 + static_cast<int>((n - 1) % 9); }

int value_in(const unsigned char (&bytes)[4]) { return bytes[2] << 8 | bytes[3]; }

void report(const char *what, long long size, int value, int step, MPI_Offset n) {
  std::printf("%s: %s, %s\n", what, size == expected_bytes ? "whole" : "short",
              value == last_value(step, n) ? "new" : "stale");
}

/// Reads the end of the file in each way that programs do.
void read_in_every_way(const char *name, int step, MPI_Offset n) {
  unsigned char last[4] = {};
  struct stat status {};
  if (step % 3 == 0) {
    stat(name, &status);
    const int fd = open(name, O_RDONLY);
    (void)!pread(fd, last, 4, status.st_size - 4);
    close(fd);
    report("stat and open", status.st_size, value_in(last), step, n);
  } else if (step % 3 == 1) {
    std::FILE *file = std::fopen(name, "rb");
    std::fseek(file, -4, SEEK_END);
    (void)!std::fread(last, 1, 4, file);
    report("fopen", std::ftell(file), value_in(last), step, n);
    std::fclose(file);
  } else {
    std::ifstream file(name, std::ios::binary);
    file.seekg(-4, std::ios::end);
    file.read(reinterpret_cast<char *>(last), 4);
    report("ifstream", file.tellg(), value_in(last), step, n);
  }
  const int folder = open(".", O_RDONLY | O_DIRECTORY);
  fstatat(folder, name, &status, 0);
  close(folder);
  std::printf("fstatat: %s\n", status.st_size == expected_bytes ? "whole" : "short");
  std::fflush(stdout);
}

/// What a program makes after it has closed a file is younger than that.
void compare_ages(const std::string &name) {
  struct stat file {
  }, marker{};
  close(open("marker", O_CREAT | O_TRUNC | O_WRONLY, 0666));
  stat(name.c_str(), &file);
  stat("marker", &marker);
  const auto time_of = [](const struct stat &of) { return std::pair(of.st_mtim.tv_sec, of.st_mtim.tv_nsec); };
  std::printf("%s\n", time_of(file) <= time_of(marker) ? "older" : "younger");
}

void run(const std::string &command) {
  std::fflush(stdout);
  std::printf("%d\n", std::system(command.c_str()));
  std::fflush(stdout);
}

void read_by_others(const std::string &name) {
  run("cp " + name + " copy." + name + " && tail -c 4 copy." + name + " | od -An -tu1");
  run("cat " + name + " | md5sum; ls -l " + name + " | awk '{print $5}'; stat -c %s " + name);
  run("dd if=" + name + " bs=64k 2>/dev/null | cksum");
  run("/usr/bin/python3 -c \"import os; print(os.path.getsize('" + name + "'), len(open('" + name +
      "','rb').read()))\"");
  if (std::FILE *pipe = popen(("wc -c < " + name).c_str(), "r")) {
    long long count = 0;
    if (std::fscanf(pipe, "%lld", &count) == 1) std::printf("popen: %lld\n", count);
    pclose(pipe);
  }
  run("ln -f " + name + " hard." + name + " && ln -sf " + name + " soft." + name + " && wc -c < hard." + name +
      " && wc -c < soft." + name);
}

/// What others see of a file while it is defined anew, and right after: the part that nothing is added to.
void look_while_defining(int ncid, int dim, const std::string &name) {
  const std::string note(8192, 'x');  // longer than the header had room for: data have to move
  MPI_Offset begin = 0;
  int var = 0;
  CHECK(ncmpi_redef(ncid));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) run("cksum < " + name);
  CHECK(ncmpi_def_var(ncid, "later", NC_INT, 1, &dim, &var));
  CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "note", static_cast<MPI_Offset>(note.size()), note.data()));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) run("cksum < " + name);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_inq_varoffset(ncid, var, &begin));
  if (rank == 0) run("head -c " + std::to_string(begin) + " " + name + " | cksum");
}

}  // namespace

int main(int argc, char **argv) {
  begin(&argc, &argv);
  const std::string way = argc > 1 ? argv[1] : "closed";
  const auto n = static_cast<MPI_Offset>((argc > 2 ? std::atof(argv[2]) : 4) * 262144);
  std::vector<int> data(static_cast<std::size_t>(n));
  for (int step = 0; step < 3; step++) {
    const std::string name = "step" + std::to_string(step) + ".nc";
    int ncid, dim, var;
    for (MPI_Offset i = 0; i < n; i++) data[static_cast<std::size_t>(i)] = 7000 + step * 16 + static_cast<int>(i % 9);
    const MPI_Offset start = n * rank;
    CHECK(ncmpi_create(MPI_COMM_WORLD, name.c_str(), NC_CLOBBER, MPI_INFO_NULL, &ncid));
    CHECK(ncmpi_def_dim(ncid, "x", n * size, &dim));
    CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
    CHECK(ncmpi_enddef(ncid));
    MPI_Offset header = 0;
    CHECK(ncmpi_inq_header_extent(ncid, &header));
    expected_bytes = header + n * size * 4;
    CHECK(ncmpi_put_vara_int_all(ncid, var, &start, &n, data.data()));
    if (way == "defined") look_while_defining(ncid, dim, name);
    const bool stays_open = way == "open" || way == "held" || way == "defined";
    if (!stays_open) CHECK(ncmpi_close(ncid));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && way == "renamed") {
      rename(name.c_str(), ("renamed." + name).c_str());
      read_in_every_way(("renamed." + name).c_str(), step, n);
    } else if (rank == 0 && way == "truncated") {
      run("truncate -s 1000 " + name + " && stat -c %s " + name);
    } else if (rank == 0 && way == "held") {
      run("mkfifo ready go && echo > ready && read _ < go; echo $(wc -c < " + name + ") bytes");
    } else if (rank == 0 && way == "aged") {
      compare_ages(name);
    } else if (rank == 0 && way == "others") {
      read_by_others(name);
    } else if (rank == 0 && way != "defined") {
      read_in_every_way(name.c_str(), step, n);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (stays_open) CHECK(ncmpi_close(ncid));
  }
  MPI_Finalize();
  return 0;
}
