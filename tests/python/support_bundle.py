"""A bundle whose tokens have the project `support`, and which sends webhooks to this machine."""

import functools
import os

from bundle import TENANT, Bundle, default_command

PROJECT = "support"
COMMAND = os.environ.get("HEARBACK_COMMAND", default_command())


class SupportBundle(Bundle):
    def __init__(self, folder):
        super().__init__(COMMAND, folder, options=("--webhooks", "--webhook-networks", "127.0.0.0/8"))

    @functools.cache
    def token(self, sub, *, projects=PROJECT, scope="", tenant=TENANT):
        """A token of a user, or of a back end."""
        return self.user(sub, projects=projects, scope=scope, tenant=tenant).token
