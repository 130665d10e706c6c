# SPDX-License-Identifier: GPL-2.0-only
"""`bench/run report`: every figure and table of the five documents beside what was measured here, losses first."""
