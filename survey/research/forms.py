"""Researchers' forms (Flask-WTF): fields, limits, and the words of their errors."""

from __future__ import annotations

from typing import Any

from flask_wtf import FlaskForm
from flask_wtf.file import FileField, FileRequired
from wtforms import (
    DateField,
    EmailField,
    HiddenField,
    IntegerField,
    PasswordField,
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

from survey.disclosure import MINIMUM_REPORTS
from survey.research.credentials import MIN_PASSWORD_LENGTH
from survey.store import ROLES, SCOPES

LONGEST = 15
"""Digits that every whole number here fits into; int() refuses thousands of them by an error."""
MOST_INVITED = 100_000
MOST_REPORTS = 10**9
MOST_LETTERS = 60
"""Of the name of a token."""

LIMIT_IN_STEPS = (
    f"Enter a multiple of {MINIMUM_REPORTS}: a limit that could be moved by one would tell how "
    "many reports wait"
)
NO_EMAIL = "Enter an email address, such as name@example.org"

MAX_UPLOAD_BYTES = 1_100_000
"""Largest request anywhere but reports: a definition file and the form around it."""


def in_steps(_: FlaskForm, field: WholeNumberField) -> None:
    """Whether somebody who may change a limit learns no more by it than releases tell."""
    if field.data and field.data % MINIMUM_REPORTS:
        raise ValidationError(LIMIT_IN_STEPS)


def whole_number(text: str, otherwise: int = 0) -> int:
    """The number that a text is, or another for a text that is none.

    >>> whole_number("42"), whole_number("4٢"), whole_number("9" * 5_000, -1)
    (42, 0, -1)
    """
    plain = text.strip()
    is_number = plain.isascii() and plain.isdecimal() and len(plain) <= LONGEST
    return int(plain) if is_number else otherwise


class WholeNumberField(IntegerField):  # type: ignore[misc]
    """A whole number of a form; one of too many digits is none, and its range says what to enter.

    Such a number is an int, and comparing it as a float, as a range does, fails.
    """

    data: Any

    def process_formdata(self, valuelist: list[str]) -> None:
        """Take what was typed; the field still shows it."""
        if valuelist and len(valuelist[0].strip()) > LONGEST:
            self.data = None
            return
        super().process_formdata(valuelist)


class SignInForm(FlaskForm):  # type: ignore[misc]
    """Address and password."""

    email = EmailField(
        "Email address", [InputRequired("Enter your email address"), Length(max=254)]
    )
    password = PasswordField("Password", [InputRequired("Enter your password"), Length(max=1024)])
    submit = SubmitField("Sign in")


class SignOutForm(FlaskForm):  # type: ignore[misc]
    """One button."""

    submit = SubmitField("Sign out")


class PublishForm(FlaskForm):  # type: ignore[misc]
    """A definition file."""

    file = FileField("Definition file", [FileRequired("Choose a definition file")])
    submit = SubmitField("Check and publish")


class CodeForm(FlaskForm):  # type: ignore[misc]
    """The second step of signing in."""

    code = StringField("Code", [InputRequired("Enter the code"), Length(max=64)])
    submit = SubmitField("Go on")


def current_password() -> PasswordField:
    """The field that asks once more for the password."""
    return PasswordField(
        "Your password now", [InputRequired("Enter your password"), Length(max=1024)]
    )


class CurrentPasswordForm(FlaskForm):  # type: ignore[misc]
    """What asks once more for the password."""

    current = current_password()


class PasswordForm(CurrentPasswordForm):
    """A new password, twice."""

    new = PasswordField(
        "New password",
        [
            InputRequired("Enter a new password"),
            Length(MIN_PASSWORD_LENGTH, 1024, f"Take at least {MIN_PASSWORD_LENGTH} characters"),
        ],
    )
    again = PasswordField(
        "New password once more", [EqualTo("new", "The two new passwords are not the same")]
    )
    submit = SubmitField("Change the password")


class AddSecondStepForm(CurrentPasswordForm):
    """The first code of an app that has taken over a secret."""

    code = StringField("Code from the app", [InputRequired("Enter the code"), Length(max=64)])
    submit = SubmitField("Add the second step")


class ConfirmForm(CurrentPasswordForm):
    """What makes an account less safe."""

    submit = SubmitField("Remove the second step")


class TokenForm(CurrentPasswordForm):
    """What a new program is called, and what it may read."""

    name = StringField(
        "Name",
        [
            DataRequired("Enter a name for the program"),
            Length(max=MOST_LETTERS, message=f"Take at most {MOST_LETTERS} characters"),
            Regexp(r"[^\x00-\x1f\x7f]+$", 0, "A name is one line of text"),
        ],
        [lambda name: (name or "").strip()],
    )
    scopes = SelectMultipleField(
        "What it may do",
        [InputRequired("Tick at least one")],
        choices=list(SCOPES),
        option_widget=CheckboxInput(),
    )
    # Once more, to stand behind the others: mistakes are listed in the order of the page.
    current = current_password()
    submit = SubmitField("Make a token")


class EndTokenForm(FlaskForm):  # type: ignore[misc]
    """One token of several."""

    token = HiddenField()
    submit = SubmitField("End")


class SessionForm(FlaskForm):  # type: ignore[misc]
    """One session of several."""

    session = HiddenField()
    submit = SubmitField("End")


class RoleForm(FlaskForm):  # type: ignore[misc]
    """What a member of a team may do."""

    role = SelectField("Role", choices=[*ROLES, "none"])
    submit = SubmitField("Change")


class InviteForm(FlaskForm):  # type: ignore[misc]
    """What a new member may do."""

    role = SelectField("Role", choices=[*ROLES])
    submit = SubmitField("Make a link")


class EndLinkForm(FlaskForm):  # type: ignore[misc]
    """One link of several."""

    link = HiddenField()


class NewcomerForm(FlaskForm):  # type: ignore[misc]
    """One button."""

    submit = SubmitField("Make a link for a new researcher")


class JoinForm(FlaskForm):  # type: ignore[misc]
    """Address and password of somebody new; who is signed in already only agrees."""

    email = EmailField(
        "Email address",
        [InputRequired("Enter your email address"), Length(max=254), Regexp(".+@.+", 0, NO_EMAIL)],
    )
    password = PasswordField(
        "Password",
        [
            InputRequired("Choose a password"),
            Length(MIN_PASSWORD_LENGTH, 1024, f"Take at least {MIN_PASSWORD_LENGTH} characters"),
        ],
    )
    submit = SubmitField("Join")

    def __init__(self, *, known: bool) -> None:
        super().__init__()
        if known:
            del self.email
            del self.password


class InvitationsForm(FlaskForm):  # type: ignore[misc]
    """How many links for one report each, and of which group."""

    count = WholeNumberField(
        "How many people",
        [
            InputRequired("Enter how many people are invited"),
            NumberRange(1, MOST_INVITED, f"Enter a number from 1 to {MOST_INVITED:,}"),
        ],
    )
    stratum = StringField("Group (if you compare groups)", [Length(max=60)])
    # How many of each group there were when the page was opened: sent twice, it makes them once.
    made = HiddenField()
    submit = SubmitField("Make the links and download them")


class ScheduleForm(FlaskForm):  # type: ignore[misc]
    """From when to when a survey takes reports, and how many."""

    opens = DateField("First day", [Optional()])
    closes = DateField("Last day", [Optional()])
    most = WholeNumberField(
        "At most so many reports",
        [
            Optional(),
            NumberRange(0, MOST_REPORTS, f"Enter 0 or more, up to {MOST_REPORTS:,}"),
            in_steps,
        ],
    )
    submit = SubmitField("Save dates and limit")


class ReleaseForm(FlaskForm):  # type: ignore[misc]
    """One button."""

    submit = SubmitField("Release what waits")


class ArchiveForm(FlaskForm):  # type: ignore[misc]
    """One button."""

    submit = SubmitField("Archive")


class DeleteForm(FlaskForm):  # type: ignore[misc]
    """The name of what is deleted for good, typed."""

    typed = StringField("The survey’s short name", [InputRequired("Type the short name")])
    submit = SubmitField("Delete the survey and all its reports")


class CloseForm(FlaskForm):  # type: ignore[misc]
    """The name of what is closed for good, typed."""

    name = StringField("The survey’s short name", [InputRequired("Type the short name")])
    submit = SubmitField("Close the survey for good")
