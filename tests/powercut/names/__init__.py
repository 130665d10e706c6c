# SPDX-License-Identifier: GPL-2.0-only
"""The campaign about names and attributes: its operations, plans, model, and programs in the guest."""
