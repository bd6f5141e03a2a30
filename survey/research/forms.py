"""Researchers' forms (Flask-WTF): fields, limits, and the words of their errors."""

from __future__ import annotations

from flask_wtf import FlaskForm
from flask_wtf.file import FileField, FileRequired
from wtforms import EmailField, PasswordField, SubmitField
from wtforms.validators import InputRequired, Length

MAX_UPLOAD_BYTES = 1_100_000
"""Largest request anywhere but reports: a definition file and the form around it."""


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
