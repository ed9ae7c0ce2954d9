#include "controller/simulation/rivals/kalman.h"

static const double FIRST_VARIANCE = 1000;

static void predict(struct kalman *k, const struct kalman_noise *noise)
{
	k->level += k->slope;
	k->p_level += 2 * k->p_cross + k->p_slope + noise->level;
	k->p_cross += k->p_slope;
	k->p_slope += noise->slope;
}

static void correct(struct kalman *k, const struct kalman_noise *noise, double reading)
{
	double scale = k->p_level + noise->reading;
	double gain_level = k->p_level / scale, gain_slope = k->p_cross / scale, miss = reading - k->level;

	k->level += gain_level * miss;
	k->slope += gain_slope * miss;
	k->p_slope -= gain_slope * k->p_cross;
	k->p_cross -= gain_level * k->p_cross;
	k->p_level -= gain_level * k->p_level;
}

double kalman_step(struct kalman *k, const struct kalman_noise *noise, double reading)
{
	if (!k->begun) {
		/* The first reading is the level; its variance stays that of knowing nothing. */
		*k = (struct kalman){
			.begun = true, .level = reading, .p_level = FIRST_VARIANCE, .p_slope = FIRST_VARIANCE
		};
	} else {
		correct(k, noise, reading);
	}
	predict(k, noise);
	return k->level > 0 ? k->level : 0;
}
