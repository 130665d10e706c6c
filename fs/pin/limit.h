/* SPDX-License-Identifier: GPL-2.0-only */
/* How many pages a user may pin: limit.c */
#ifndef FOREBAY_PIN_LIMIT_H
#define FOREBAY_PIN_LIMIT_H

#include <linux/uidgid.h>

#include "../forebay.h"

struct fb_account;

struct fb_account *fb_pin_charge(struct fb_inode *fi, kuid_t uid, bool privileged, unsigned long pages);
void fb_pin_uncharge(struct fb_inode *fi, struct fb_account *account, unsigned long pages);

#endif
