#include "tests/unit/providers/conformance.h"
