/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What to do when the kernel refuses something for want of rights.
 */
#ifndef FOREBAY_TOOLS_RIGHTS_H
#define FOREBAY_TOOLS_RIGHTS_H

const char *rights_lacking(void);
const char *rights_advice(void);

#endif
