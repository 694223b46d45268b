// Instances of the templates whose members belong to a lock or a thread. Compiled by ../thread_safety_test.py alone.
#include "app/desktop/models/background.h"
#include "storage/mailbox.h"

template class stepladder::Mailbox<int>;
template class stepladder::Background<int>;
