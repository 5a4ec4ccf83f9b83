// SPDX-License-Identifier: BSD-3-Clause
// One page, for whoever asks by HTTP: a thread that answers GET requests for one path, one request a connection.
//
// Design notes. Made here because the library that Debian has for it brings TLS and compression into every process. Few
// connections at once, each for a few seconds and a few kilobytes: what is beyond that is closed. Nothing that comes in
// is kept or told.
#pragma once

#include <nessie/result.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace nssi {

class PageServer {
 public:
  using Page = std::function<std::string()>;
  struct Options {
    std::string path, content_type;
    Page make;  ///< called by the server's thread for each request
  };
  /// Listens at `address`, "HOST:PORT" or "[IPv6]:PORT"; port 0: any that is free; no HOST: all addresses.
  /// kInvalidArgument: it is no address. kIo, with the cause: nobody can listen there.
  static nessie::Result<std::unique_ptr<PageServer>> open(std::string_view address, Options options);
  /// Waits for `make` to return, if it is being called.
  ~PageServer();
  PageServer(const PageServer &) = delete;
  /// Where it listens: "127.0.0.1:9464".
  const std::string &address() const { return address_; }

 private:
  struct Connection;
  PageServer(int listener, int wake, std::string address, Options options);
  void serve();
  std::string answer(std::string_view request) const;

  const int listener_, wake_;
  const std::string address_;
  const Options options_;
  std::thread thread_;
};

}  // namespace nssi
