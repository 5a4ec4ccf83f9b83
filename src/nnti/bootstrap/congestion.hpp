// SPDX-License-Identifier: BSD-3-Clause
// Which congestion control TCP sockets have: none that paces what it sends where both ends are on one host.
//
// Between two processes of one host there is nothing to be congested, and a pace only takes time: that of BBR, where it
// is the host's control, follows the small messages that go between bulk, and the time until a busy peer answers. A
// socket that once had such a control keeps a pace when it gets another one. So it begins without, and gets the host's
// when it is connected, if the other end turns out to be elsewhere.
#pragma once

namespace nnti::congestion {

/// Of a TCP socket that is not connected yet. What a listening one accepts begins as it does.
void begin_without_pace(int socket);
/// Of one that is connected: the host's control, if the peer is on another host, and the route to it has none of its
/// own.
void choose(int socket);

}  // namespace nnti::congestion
