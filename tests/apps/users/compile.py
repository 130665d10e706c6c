# SPDX-License-Identifier: GPL-2.0-only
"""A parallel compile with make. The result runs from the file system it was built on, and make finds
nothing more to do."""

from place import call, expect

MAKEFILE = """\
CFLAGS = -O1 -g -MMD
parts = $(patsubst %.c,%.o,$(wildcard part*.c))
program: main.o libparts.a libshared.so
	$(CC) -o $@ main.o libparts.a -L. -lshared -Wl,-rpath,'$$ORIGIN'
libparts.a: $(parts)
	$(AR) rcs $@ $^
libshared.so: shared.c
	$(CC) -shared -fPIC -o $@ $<
-include *.d
"""
PART = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "parts.h"
long part{n}(long x) {{ char text[64]; snprintf(text, sizeof(text), "%ld", x + {n}); return atol(text) + strlen("{n}") * 0; }}
"""
MAIN = """\
#include <stdio.h>
#include "parts.h"
long shared(long x);
int main(void) {{ long x = 0; {calls} printf("%ld\\n", shared(x)); return 0; }}
"""


def run(place):
    count, folder = place.size(6, 3), place.folder
    write(folder / "Makefile", MAKEFILE)
    write(folder / "parts.h", "".join(f"long part{n}(long x);\n" for n in range(count)))
    for n in range(count):
        write(folder / f"part{n}.c", PART.format(n=n))
    write(folder / "main.c", MAIN.format(calls=" ".join(f"x = part{n}(x);" for n in range(count))))
    write(folder / "shared.c", "long shared(long x) { return x * 2; }\n")
    call("make", "-j2", cwd=folder)
    result = call(folder / "program").strip()
    expect(result == str(count * (count - 1)), f"the program says {result}, not {count * (count - 1)}")
    again = call("make", "-j2", cwd=folder)
    expect("up to date" in again, f"make is not content with what it built:\n{again}")
    write(folder / "parts.h", (folder / "parts.h").read_text() + "/* changed */\n")
    again = call("make", "-j2", cwd=folder)
    expect(again.count("-c -o part") == count, f"make has not noticed a change:\n{again}")
    call("strip", "-o", "stripped", "program", cwd=folder)
    expect(call(folder / "stripped").strip() == result, "the stripped program says something else")


def write(path, text):
    path.write_text(text)
