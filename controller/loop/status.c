#include "controller/loop/parts.h"
void status_write(struct controller *c)
{
	(void)c;
}
