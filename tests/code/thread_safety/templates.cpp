// Instances of the templates whose members belong to a lock or a thread. Compiled by ../thread_safety_test.py alone.
#include "app/desktop/models/background.h"

template class stepladder::Job<int>;
template class stepladder::JobQueue<int>;
template class stepladder::Background<int>;
