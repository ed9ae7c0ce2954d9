/*
 * Services of the world: their slices follow the pods' labels some seconds late, as the real ones do, and doors of the
 * controllers (base/net/relay.h, linked over) hold what waits for an app of the pool's name.
 */
#pragma once
#include "tests/world/world.h"

/* Of the pods of the app; of a shared one, those labelled awake. */
void world_service(const char *app);
/* The law service_leads_somewhere holds from now on for this Service: always somebody takes its requests. */
void world_service_leads(const char *app);
/* Whether a door of a controller is among its endpoints. */
bool world_service_is_held(const char *app);

/* The world's own. */
void services_second(void);
void services_written(void); /* something, at the API server */
void services_end(void);
