#pragma once

#include <sys/types.h>

#include "base/result.h"

// Rights that this process, and all that it starts, give up for good. To be called before there are threads. Where the
// kernel knows no such thing, nothing happens.
namespace berth::node {

// No file is written, made or removed any more; those that are open stay so. By Landlock.
bool give_up_writing_files();

// Only what it takes to get an order over a socket that is open, write a file, and answer: no socket, no process, no
// mount can be had. By seccomp; what is not allowed fails with EPERM.
bool allow_orders_only();

// No capability is had any more, nor got back by starting a program.
void give_up_capabilities();

// Root becomes this user, and that user's group alone; all threads do, and no capability is left. Nobody but root does
// anything here.
Status become_user(uid_t user);

}  // namespace berth::node
