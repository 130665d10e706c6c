// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC-32C without the customary inversions: bytes can be added piece by piece, starting from any value.
 */
#include "crc.h"

#include <string.h>

#define POLYNOMIAL	0x82f63b78u

/* Bit by bit, for processors without the instruction. */
static __u32 add_slowly(__u32 crc, const unsigned char *at, size_t length)
{
	while (length--) {
		crc ^= *at++;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
	}
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2")))
static __u32 add_fast(__u32 crc, const unsigned char *at, size_t length)
{
	__u64 wide = crc, word;

	for (; length >= sizeof(word); length -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (__u32)wide;
	while (length--)
		crc = __builtin_ia32_crc32qi(crc, *at++);
	return crc;
}
#endif

/**
 * crc_add - add bytes to a checksum
 * @crc: the checksum of the bytes before, or a start value
 * @data: bytes
 * @length: how many
 *
 * Context: any thread; no locks.
 * Return: the checksum of the bytes before and these.
 */
__u32 crc_add(__u32 crc, const void *data, size_t length)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return add_fast(crc, data, length);
#endif
	return add_slowly(crc, data, length);
}
