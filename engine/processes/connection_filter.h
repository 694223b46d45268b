// Keeps other users of this machine out of the connections between the processes that train together. LibTorch's
// process groups accept whoever connects to them first, and everybody may connect to loopback. Therefore the program
// has its own `accept` and `accept4`, which the libraries call instead of the C library's: they close a connection from
// another user, and fail with EAGAIN then. They don't wait for the next one, even on a socket that blocks: the thread
// that calls them serves the other connections as well.
#pragma once

namespace stepladder {

// Whether the other end of a TCP connection belongs to another user of this machine, or has been closed already. False
// for other machines, and for sockets that aren't TCP.
bool is_from_another_user(int connection);

}  // namespace stepladder
