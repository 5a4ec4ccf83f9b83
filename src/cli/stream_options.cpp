// SPDX-License-Identifier: BSD-3-Clause
// What `nessie stream` can be told.
#include "stream.hpp"

#include <base/config.hpp>

namespace nessie::cli {

namespace {

using Action = StreamOptions::Action;

constexpr const char *kStreamFooter =
    "A running program's arrays, step by step, in other programs, in files, and on other machines: docs/streams.md.\n\n"
    "Examples:\n"
    "  nessie stream serve --memory 4G                        servers of streams, until Ctrl-C\n"
    "  nessie stream list                                     which streams there are\n"
    "  nessie stream tail flow --box 'T[0:4,0]' --values      what is in them\n"
    "  nessie stream record flow -o flow.nc                   each step a record of a netCDF file\n"
    "  nessie stream forward flow --to file:/net/b.contact    the same stream on other servers\n"
    "  nessie stream COMMAND --help                           more of each\n";

constexpr const char *kTailFooter =
    "Looks on, and holds nothing: steps that come faster than they are shown are missed, and counted; with --every it\n"
    "is shown all, and those who write may have to wait for it.\n"
    "A box is written as in Python: NAME[0:9,:,5] are the elements 0 to 8 of the first dimension, all of the second, "
    "and\n"
    "element 5 of the third; what is negative counts from the end; dimensions that are not said are taken whole. "
    "Minimum,\n"
    "maximum and mean are computed where the data are. Neither NaN nor fill values count.\n\n"
    "Examples:\n"
    "  nessie stream tail flow\n"
    "  nessie stream tail flow --from oldest --every --steps 10 --json | jq '.variables[] | {name, mean}'\n"
    "  nessie stream tail flow --box 'T[-1,:8,:8]' --box time --values\n";

constexpr const char *kRecordFooter =
    "Each step is a record of a netCDF file in the format CDF-5, synced before the stream may forget it; the variable "
    "step\n"
    "has the steps' numbers. docs/streams-formats.md says the rest. --append continues a file, also of one that was "
    "killed:\n"
    "no step is in it twice. With --as NAME the servers hold all steps for whoever comes by that name, until "
    "`nessie stream\n"
    "forget`: so none is missing, either. Steps that were gone before they could be written are said, and the exit "
    "code "
    "is\n"
    "74 then. Ctrl-C ends it when the step that is being written is whole.\n\n"
    "Examples:\n"
    "  nessie stream record flow -o flow.nc\n"
    "  nessie stream record flow -o flow.nc --append --as archive --variables T,p\n";

constexpr const char *kForwardFooter =
    "PLACE is where servers of streams are: file:CONTACT, dir:NAME, or a URL. The stream is written there under its "
    "name, or\n"
    "--as another one. tcp://HOST:PORT, and no more, is a program that takes steps over a socket, as `nessie stream "
    "receive`\n"
    "does (src/services/streams/sinks/TCP.md). Links that break are made anew: what is there already is not sent "
    "again.\n"
    "--append does the same for one that was killed; with --subscription NAME the servers hold all steps meanwhile.\n\n"
    "Examples:\n"
    "  nessie stream forward flow --to file:/net/edge.contact\n"
    "  nessie stream forward flow --to dir:edge/streams --as flow-edge --rate 50M --append --subscription edge\n"
    "  nessie stream forward flow --to tcp://node7:4711\n";

constexpr const char *kReceiveFooter =
    "The other end of `nessie stream forward --to tcp://HOST:PORT`, or of any program that speaks as\n"
    "src/services/streams/sinks/TCP.md says. It prints where it listens, and acknowledges a step when that is on the "
    "disk: in\n"
    "one file (-o), as `nessie stream record` writes it, or each in a file of its own (--into). Started again after it "
    "was\n"
    "killed, with --append for -o, it goes on. It ends when the stream has. Nobody has to say who he is: listen on "
    "addresses\n"
    "that only those reach who may send.\n\n"
    "Examples:\n"
    "  nessie stream receive -o flow.nc\n"
    "  nessie stream receive --listen node7:4711 --into /scratch/flow\n";

constexpr const char *kServeFooter =
    "Becomes nessie-streams, in the foreground. Programs of yours on this node find it by themselves; with --announce "
    "all\n"
    "find it where that says, which the setting streams.at (NESSIE_STREAMS_AT) or --at tells them.\n"
    "All settings: docs/configuration.md.\n\n"
    "Examples:\n"
    "  nessie stream serve\n"
    "  nessie stream serve --memory 4G --log /local/ssd --announce file:/scratch/job/streams.contact\n";

std::string check_bytes(const std::string &text) {
  const auto size = nessie::parse_size(text);
  return size ? std::string() : size.error().message;
}

/// One command, with what all of them take.
CLI::App *add(CLI::App &parent, StreamOptions &options, Action action, const char *name, const char *about) {
  auto *command = parent.add_subcommand(name, about);
  command->callback([&options, action] { options.action = action; });
  if (action == Action::kServe) return command;
  command
      ->add_option("-t,--timeout", options.timeout_s,
                   "How many seconds others who are not there, or do not answer, are waited for")
      ->check(CLI::Range(1, 86400 * 365))
      ->capture_default_str();
  command->add_flag("--json", options.json, "Print JSON, one object a line");
  if (action != Action::kReceive)
    command->add_option("--at", options.at,
                        "Where the servers are: a URL, file:PATH, dir:NAME, pmix:NAME or env:VARIABLE (the setting "
                        "streams.at, or yours on this node)");
  return command;
}

CLI::App *add_with_stream(CLI::App &parent, StreamOptions &options, Action action, const char *name,
                          const char *about) {
  auto *command = add(parent, options, action, name, about);
  command->add_option("NAME", options.name, "The stream's name")->required();
  return command;
}

void add_steps(CLI::App &command, StreamOptions &options) {
  command.add_option("-n,--steps", options.steps, "End after so many steps")->check(CLI::PositiveNumber);
}

void add_variables(CLI::App &command, StreamOptions &options) {
  command.add_option("--variables", options.variables, "Only these, as T,p")->delimiter(',')->allow_extra_args(false);
}

void add_tail(CLI::App &parent, StreamOptions &options) {
  auto *tail = add_with_stream(parent, options, Action::kTail, "tail", "Show each step as it comes");
  tail->footer(kTailFooter);
  tail->add_option("--box", options.boxes, "Only this part of a variable, as 'T[0:9,:,5]'; may be said again and again")
      ->allow_extra_args(false);
  tail->add_flag("--values", options.values, "The elements, too");
  tail->add_flag("--every", options.every, "Every step, not the newest each time");
  tail->add_option("--from", options.from, "Where to begin: oldest, latest (default), next, or a step's number");
  add_steps(*tail, options);
  add_variables(*tail, options);
}

void add_record(CLI::App &parent, StreamOptions &options) {
  auto *record = add_with_stream(parent, options, Action::kRecord, "record", "Write the steps to a netCDF file");
  record->footer(kRecordFooter);
  record->add_option("-o,--output", options.out, "The file")->required();
  record->add_flag("--append", options.append, "Continue the file if it is there");
  record->add_option("--as,--subscription", options.subscription,
                     "Resume where the last one of that name was; steps are held for it meanwhile");
  add_steps(*record, options);
  add_variables(*record, options);
}

void add_forward(CLI::App &parent, StreamOptions &options) {
  auto *forward = add_with_stream(parent, options, Action::kForward, "forward", "Hand the steps on to other servers");
  forward->footer(kForwardFooter);
  forward->add_option("--to", options.to, "Where: the place of other servers, or tcp://HOST:PORT")->required();
  forward->add_option("--as", options.as, "The stream's name there (the same)");
  forward->add_option("--rate", options.rate, "Bytes a second at most, e.g. 50M")->check(check_bytes);
  forward->add_flag("--append", options.append, "Continue the stream that is there");
  forward->add_option("--subscription", options.subscription,
                      "Resume where the last one of that name was; steps are held for it meanwhile");
  add_steps(*forward, options);
  add_variables(*forward, options);
}

void add_receive(CLI::App &parent, StreamOptions &options) {
  auto *receive = add(parent, options, Action::kReceive, "receive", "Take steps that are sent over a socket");
  receive->footer(kReceiveFooter);
  options.listen = "127.0.0.1:0", options.most = "4G";
  receive->add_option("--listen", options.listen, "HOST:PORT; port 0: any that is free")->capture_default_str();
  auto *out = receive->add_option("-o,--output", options.out, "A netCDF file for all steps");
  auto *into = receive->add_option("--into", options.folder, "A folder, with a file for each step")->excludes(out);
  receive->add_flag("--append", options.append, "Continue the file if it is there")->excludes(into);
  receive->add_option("--most", options.most, "The largest step that is taken")
      ->check(check_bytes)
      ->capture_default_str();
  receive->parse_complete_callback([out, into] {
    if (out->empty() && into->empty()) throw CLI::RequiredError("-o FILE or --into FOLDER");
  });
}

void add_serve_streams(CLI::App &parent, StreamOptions &options) {
  auto *serve = add(parent, options, Action::kServe, "serve", "Start a server of streams");
  serve->footer(kServeFooter);
  serve->add_option("-n,--name", options.name, "What it is called, where several of yours run on this node");
  serve->add_option("-M,--memory", options.memory, "Memory for steps, e.g. 4G")->check(check_bytes);
  serve->add_option("--log", options.log, "The folder of its log; none: without");
  serve->add_option("-a,--announce", options.announce, "Where it is found instead: file:PATH, pmix:NAME or dir:NAME");
}

}  // namespace

void add_stream(CLI::App &app, StreamOptions &options) {
  auto *parent = app.add_subcommand("stream", "Show, record and forward the streams of running programs");
  parent->footer(kStreamFooter);
  parent->require_subcommand(1);
  add(*parent, options, Action::kList, "list", "List the streams that there are");
  add_with_stream(*parent, options, Action::kInfo, "info", "Show all that is known of a stream");
  add_tail(*parent, options);
  add_record(*parent, options);
  add_forward(*parent, options);
  add_receive(*parent, options);
  add_with_stream(*parent, options, Action::kForget, "forget", "Hold steps for a subscription no longer")
      ->add_option("--subscription,--as", options.subscription, "Its name")
      ->required();
  add_serve_streams(*parent, options);
}

}  // namespace nessie::cli
