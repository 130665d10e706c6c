# SPDX-License-Identifier: GPL-2.0-only
# Refuses folders in which `make install` and `make uninstall` would go astray. make takes a name with a space for two names,
# also behind `rm -rf`. A relative DESTDIR would be another folder in each of the makefiles.
ifneq ($(words [$(DESTDIR)$(PREFIX)$(LIBDIR)$(HELPER_DIR)]),1)
$(error DESTDIR, PREFIX and the like must not have spaces: '$(DESTDIR)', '$(PREFIX)')
endif
ifneq ($(filter-out /%,$(DESTDIR)),)
$(error DESTDIR must be an absolute path, and is '$(DESTDIR)')
endif
