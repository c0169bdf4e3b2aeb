#pragma once

#include <string>

#include "base/error.h"
#include "store/record.h"

// What the store answers when it says no, in the words Kubernetes' clients know.
namespace berth::store {

Error already_exists(const Key&);
Error missing(const Key&);
Error changed(const Key&);
Error other_uid(const Key&, const std::string& wanted, const std::string& found);
Error too_old(Revision asked, Revision oldest);
Error too_new(Revision asked, Revision current);
Error overloaded();
Error log_failed(const Error& cause);
Error closed();

}  // namespace berth::store
