#include "tests/unit/providers/modelled_cloud.h"
