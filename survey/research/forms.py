"""The forms of the researchers' pages (Flask-WTF), outside the builder."""

from __future__ import annotations

from datetime import date
from typing import Any

from flask_wtf import FlaskForm
from flask_wtf.file import FileField, FileRequired
from wtforms import (
    DateField,
    EmailField,
    HiddenField,
    IntegerField,
    PasswordField,
    SelectChoice,
    SelectField,
    SelectMultipleField,
    StringField,
    SubmitField,
)
from wtforms.validators import (
    DataRequired,
    EqualTo,
    InputRequired,
    Length,
    NumberRange,
    Optional,
    Regexp,
    ValidationError,
)
from wtforms.widgets import CheckboxInput

from survey.store import LICENSES, MAX_NOTE_LENGTH, ROLES, SCOPES

MAX_DIGITS = 15
"""Digits of the longest number that any form accepts; `int` rejects thousands of digits."""

MAX_INVITATIONS = 100_000
MAX_RESPONSES = 10**9
MAX_TOKEN_NAME = 60
MAX_LINK_LABEL = 60

NO_EMAIL = "Enter an email address, such as name@example.org"

MAX_UPLOAD_BYTES = 1_100_000
"""Maximum size of any request except reports: a definition file with its form."""


def whole_number(text: str, default: int = 0) -> int:
    """Parse a whole number; return the default for any other text.

    >>> whole_number("42"), whole_number("4٢"), whole_number("9" * 5_000, -1)
    (42, 0, -1)
    """
    digits = text.strip()
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS
    return int(digits) if is_number else default


class WholeNumberField(IntegerField):  # type: ignore[misc]
    """A whole number; a number with too many digits is rejected like one out of range.

    Such a number would be an int that cannot be compared with the limits as a float.
    """

    data: Any

    def process_formdata(self, valuelist: list[str]) -> None:
        """Parse the text; the field still shows it if it is rejected."""
        if valuelist and len(valuelist[0].strip()) > MAX_DIGITS:
            self.data = None
            return
        super().process_formdata(valuelist)


class SignInForm(FlaskForm):  # type: ignore[misc]
    """Email address and password."""

    email = EmailField(
        "Email address", [InputRequired("Enter your email address"), Length(max=254)]
    )
    password = PasswordField("Password", [InputRequired("Enter your password"), Length(max=1024)])
    submit = SubmitField("Sign in")


def button_form(label: str) -> type[FlaskForm]:
    """Return a form that consists of one button."""
    return type("ButtonForm", (FlaskForm,), {"submit": SubmitField(label)})


SignOutForm = button_form("Sign out")
InviteResearcherForm = button_form("Create link for a new researcher")
ArchiveForm = button_form("Archive")


class PublishForm(FlaskForm):  # type: ignore[misc]
    """The upload of a definition file."""

    file = FileField("Definition file", [FileRequired("Choose a definition file")])
    submit = SubmitField("Check and publish")


class CodeForm(FlaskForm):  # type: ignore[misc]
    """The authentication code, after the password."""

    code = StringField("Authentication code", [InputRequired("Enter the code"), Length(max=64)])
    submit = SubmitField("Continue")


def _current_password() -> PasswordField:
    return PasswordField(
        "Current password", [InputRequired("Enter your password"), Length(max=1024)]
    )


class CurrentPasswordForm(FlaskForm):  # type: ignore[misc]
    """A form that requires the password of the researcher who is signed in, if they have one."""

    current = _current_password()

    def __init__(self, *, has_password: bool, **options: Any) -> None:
        super().__init__(**options)
        if not has_password:
            del self.current


class PasswordForm(CurrentPasswordForm):
    """A new password, typed twice."""

    new = PasswordField(
        "New password",
        [InputRequired("Enter a new password"), Length(max=1024)],
    )
    again = PasswordField(
        "Repeat the new password", [EqualTo("new", "The two new passwords differ")]
    )
    submit = SubmitField("Change password")


class TwoFactorRuleForm(FlaskForm):  # type: ignore[misc]
    """The button that makes two-factor authentication required or optional for all accounts."""

    required = HiddenField()


def _app_code(app: str) -> StringField:
    return StringField(
        f"Code from your {app} app, or a recovery code",
        [InputRequired(f"Enter a code from your {app} app, or a recovery code"), Length(max=64)],
    )


class AddTwoFactorForm(CurrentPasswordForm):
    """The first code of an authenticator app that has scanned a new secret.

    A researcher who already has an app also enters a code of the current app.
    """

    code = StringField("Code from the app", [InputRequired("Enter the code"), Length(max=64)])
    existing_app_code = _app_code("current")
    submit = SubmitField("Switch on two-factor authentication")

    def __init__(self, *, has_password: bool, has_factor: bool) -> None:
        super().__init__(has_password=has_password)
        if has_factor:
            self.code.label.text = "Code from the new app"
        else:
            del self.existing_app_code


class RemoveTwoFactorForm(CurrentPasswordForm):
    """The code and the button that switch off two-factor authentication."""

    existing_app_code = _app_code("authenticator")
    submit = SubmitField("Switch off two-factor authentication")


def in_one_line(text: str | None) -> str:
    """Return a text without line breaks or repeated spaces."""
    return " ".join((text or "").split())


class TokenForm(CurrentPasswordForm):
    """The name and the scopes of a new API token."""

    name = StringField(
        "Name",
        [
            DataRequired("Enter a name for the token"),
            Length(max=MAX_TOKEN_NAME, message=f"Use at most {MAX_TOKEN_NAME} characters"),
            Regexp(r"[^\x00-\x1f\x7f]+$", 0, "Enter the name on one line"),
        ],
        [lambda name: (name or "").strip()],
    )
    scopes = SelectMultipleField(
        "Permissions",
        [InputRequired("Select at least one permission")],
        choices=list(SCOPES),
        option_widget=CheckboxInput(),
    )
    # Declared again so that mistakes are listed in the order of the page.
    current = _current_password()
    submit = SubmitField("Create token")


class RevokeTokenForm(FlaskForm):  # type: ignore[misc]
    """The API token to revoke."""

    token = HiddenField()
    submit = SubmitField("Revoke")


class SessionForm(FlaskForm):  # type: ignore[misc]
    """The session to end."""

    session = HiddenField()
    submit = SubmitField("End")


class RoleForm(FlaskForm):  # type: ignore[misc]
    """The new role of a member of a team."""

    role = SelectField("Role", choices=[*ROLES, "none"])
    submit = SubmitField("Change")


class InviteForm(FlaskForm):  # type: ignore[misc]
    """The role of a new member of a team."""

    role = SelectField("Role", choices=[*ROLES])
    submit = SubmitField("Create link")


class InvitationLinkForm(FlaskForm):  # type: ignore[misc]
    """The invitation link to revoke."""

    link = HiddenField()


class JoinForm(FlaskForm):  # type: ignore[misc]
    """A new account; researchers who are signed in only confirm."""

    email = EmailField(
        "Email address",
        [InputRequired("Enter your email address"), Length(max=254), Regexp(".+@.+", 0, NO_EMAIL)],
    )
    password = PasswordField(
        "Password",
        [InputRequired("Choose a password"), Length(max=1024)],
    )
    submit = SubmitField("Join")

    def __init__(self, *, has_account: bool) -> None:
        super().__init__()
        if has_account:
            del self.email
            del self.password


class InvitationsForm(FlaskForm):  # type: ignore[misc]
    """The number of single-use invitations to create, and their group."""

    count = WholeNumberField(
        "Number of people",
        [
            InputRequired("Enter the number of people to invite"),
            NumberRange(1, MAX_INVITATIONS, f"Enter a number from 1 to {MAX_INVITATIONS:,}"),
        ],
    )
    stratum = StringField("Group (if you compare groups)", [Length(max=60)])
    # Invitations per group when the page was opened: a form sent twice creates them once.
    made = HiddenField()
    submit = SubmitField("Create and download links")


class ResultLinkForm(FlaskForm):  # type: ignore[misc]
    """A new link to the results: the reader it is for, and its last day."""

    label = StringField(
        "Who is it for?",
        [
            DataRequired("Enter who the link is for, such as Ministry"),
            Length(max=MAX_LINK_LABEL, message=f"Use at most {MAX_LINK_LABEL} characters"),
        ],
        filters=[in_one_line],
    )
    expires = DateField("Last day", [InputRequired("Enter the last day of the link")])
    submit = SubmitField("Create link")

    def validate_label(self, field: StringField) -> None:
        """Reject characters that cannot be printed."""
        if not field.data.isprintable():
            raise ValidationError("The name must not contain control characters")


class RevokeResultLinkForm(FlaskForm):  # type: ignore[misc]
    """The link to the results to revoke."""

    link = HiddenField()


class PublicResultsForm(FlaskForm):  # type: ignore[misc]
    """Whether anyone may read the results, "yes" or empty, and under which license."""

    public = HiddenField()
    license = SelectField(
        "License",
        choices=[SelectChoice("", "No license"), *(SelectChoice(name, name) for name in LICENSES)],
    )


class EmailNoticeForm(FlaskForm):  # type: ignore[misc]
    """Whether the researcher gets an e-mail about each release: "yes" or empty."""

    subscribe = HiddenField()


class WebhookForm(FlaskForm):  # type: ignore[misc]
    """The address of a new webhook."""

    url = StringField(
        "Address of the webhook",
        [
            DataRequired(
                "Enter the address of the webhook, such as https://hooks.example.org/survey"
            )
        ],
        filters=[lambda text: (text or "").strip()],
    )
    submit = SubmitField("Add webhook")


class RemoveWebhookForm(FlaskForm):  # type: ignore[misc]
    """The webhook to remove."""

    url = HiddenField()


class ScheduleForm(FlaskForm):  # type: ignore[misc]
    """The dates of a survey and its response limit."""

    opens = DateField("First day", [Optional()])
    closes = DateField("Last day", [Optional()])
    most = WholeNumberField(
        "Response limit",
        [
            Optional(),
            NumberRange(0, MAX_RESPONSES, f"Enter a number from 0 to {MAX_RESPONSES:,}"),
        ],
    )
    submit = SubmitField("Save dates and limit")


class NoteForm(FlaskForm):  # type: ignore[misc]
    """A note on the trends of a survey: a day and an event."""

    day = StringField("Date")
    text = StringField("What happened", filters=[in_one_line])
    submit = SubmitField("Add note")

    def validate_day(self, field: StringField) -> None:
        """Require a date in the format that browsers send."""
        try:
            is_day = date.fromisoformat(field.data or "").isoformat() == field.data
        except ValueError:
            is_day = False
        if not is_day:
            raise ValidationError("Enter the date as year-month-day, such as 2026-11-17")

    def validate_text(self, field: StringField) -> None:
        """Reject an empty note, one that is too long, and characters that cannot be printed."""
        n = len(field.data)
        if not n:
            raise ValidationError("Write what happened on this date")
        if n > MAX_NOTE_LENGTH:
            raise ValidationError(
                f"A note must be at most {MAX_NOTE_LENGTH} characters long (found {n})"
            )
        if not field.data.isprintable():
            raise ValidationError("A note must not contain control characters")


class DeleteForm(FlaskForm):  # type: ignore[misc]
    """The short name of the survey to delete, typed as a confirmation."""

    typed = StringField("Short name of the survey", [InputRequired("Type the short name")])
    submit = SubmitField("Delete survey and all responses")


class TabletForm(FlaskForm):  # type: ignore[misc]
    """A file of responses that a tablet in field mode has saved."""

    file = FileField("Tablet’s file", [FileRequired("Choose a file")])
    submit = SubmitField("Import file")


class CloseForm(FlaskForm):  # type: ignore[misc]
    """The short name of the survey to close, typed as a confirmation."""

    name = StringField("Short name of the survey", [InputRequired("Type the short name")])
    submit = SubmitField("Close survey permanently")
