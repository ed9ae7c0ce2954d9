/*
 * Functions that nobody here may call; force-included into every file by
 * CMake. The compiler then names the call and the remedy. The one file that
 * needs one of them says `#undef` with its reason, and tests/check_layers.sh
 * knows that file.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* No room is told to them: struct buf, or snprintf. */
#undef strcpy
#define strcpy(...) banned_strcpy_use_buf_or_snprintf
#undef strcat
#define strcat(...) banned_strcat_use_buf_or_snprintf
#undef strncpy
#define strncpy(...) banned_strncpy_use_buf_or_snprintf
#undef strncat
#define strncat(...) banned_strncat_use_buf_or_snprintf
#undef sprintf
#define sprintf(...) banned_sprintf_use_buf_or_snprintf
#undef vsprintf
#define vsprintf(...) banned_vsprintf_use_buf_or_vsnprintf

/* They return what they make of bad input, or nothing: base/quantity.h. */
#undef atoi
#define atoi(...) banned_atoi_use_base_quantity
#undef atol
#define atol(...) banned_atol_use_base_quantity
#undef atoll
#define atoll(...) banned_atoll_use_base_quantity
#undef atof
#define atof(...) banned_atof_use_base_quantity
#undef strtol
#define strtol(...) banned_strtol_use_base_quantity
#undef strtoul
#define strtoul(...) banned_strtoul_use_base_quantity
#undef scanf
#define scanf(...) banned_scanf_use_base_quantity
#undef sscanf
#define sscanf(...) banned_sscanf_use_base_quantity
#undef fscanf
#define fscanf(...) banned_fscanf_use_base_lines

/* Hidden state, shared by everyone. */
#undef strtok
#define strtok(...) banned_strtok_use_strtok_r
#undef gmtime
#define gmtime(...) banned_gmtime_use_gmtime_r
#undef localtime
#define localtime(...) banned_localtime_use_localtime_r
#undef ctime
#define ctime(...) banned_ctime_use_strftime
#undef asctime
#define asctime(...) banned_asctime_use_strftime
#undef rand
#define rand(...) banned_rand_use_base_random
#undef srand
#define srand(...) banned_srand_use_base_random

/* A shell is never needed. */
#undef system
#define system(...) banned_system
#undef popen
#define popen(...) banned_popen
#undef getenv
#define getenv(...) banned_getenv_outside_the_edge
