"""The password asked for once more, before what makes an account safer or less safe."""

from __future__ import annotations

import time

from flask import request

from survey.research.forms import CurrentPasswordForm
from survey.research.people.throttle import THROTTLED
from survey.research.workspace import Workspace

WRONG_PASSWORD = "This is not your password."  # noqa: S105  what a page says


def proves_password(workspace: Workspace, form: CurrentPasswordForm) -> bool:
    """Whether the password in a form is right; its errors say so when it is not."""
    address, email = request.remote_addr or "", workspace.signed_in.known().email
    if not workspace.throttle.admits(address, email, time.time()):
        form.current.errors = [THROTTLED]
        return False
    if workspace.signed_in.verified(email, form.current.data) is None:
        form.current.errors = [WRONG_PASSWORD]
        return False
    workspace.throttle.succeeded(address, email)
    return True
