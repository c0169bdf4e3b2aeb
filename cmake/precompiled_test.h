#include <gtest/gtest.h>

#include "precompiled.h"
