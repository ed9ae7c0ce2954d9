/*
 * Who else sets replicas, as they act by themselves: the HorizontalPodAutoscalers of kube-controller-manager (each 15
 * seconds; bounds are kept at once, what its metric wants is followed, a workload at zero is left alone) and a GitOps
 * controller that applies what stands in its repository.
 */
#pragma once
#include "tests/world/world.h"

void autoscaler_begin(void); /* after world_begin(), and again after each */
void autoscaler_end(void);
/* `label`: a key that whoever made it wrote, with the value `made_by`; "": nobody did. */
struct object *autoscaler_create(const char *app, int64_t min, int64_t max, const char *label, const char *made_by);
void autoscaler_wish(struct object *hpa, int64_t replicas); /* what its metric says from now on */
/* Their policy of scaling down from now on: one pod in so long. */
void autoscalers_lower_each(millis period);
/* Sets the replicas to that number each so often, where they are not, as that field manager; 0: it has left them out.
 */
void gitops_apply(const char *app, const char *manager, int64_t replicas, millis each);
size_t others_scaling(const char *app); /* how many of them set its replicas now */
