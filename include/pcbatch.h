/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PCBATCH_H
#define PCBATCH_H
#include "pcbatch/group.h"
#endif
