#include "controller/loop/parts.h"
void retain_some(struct controller *c) { (void)c; }
