"""The page of tokens, for admins of all deployments: those there are, one that is made, and one that is revoked."""

import secrets
from collections.abc import Mapping
from functools import partial

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from api.people.auth import Access, secret_of_session
from api.people.page.files import HEADERS, PageMethods, filled, instants, page
from api.people.page.forms import form_fields, form_token
from api.people.page.logins import to_login
from db.access_tokens import all_tokens, create_token, revoke_token
from db.connection.transactions import in_transaction
from domain.installation.tokens import (
    SECRET_BYTES,
    SECRET_PREFIX,
    NewToken,
    NoTokenError,
    Role,
    Token,
    TokenExistsError,
    TokenNotFoundError,
)
from domain.text.errors import InvalidInputError, RollwayError


class TokenForms:
    """The routes of the page of tokens."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        return [
            Route("/tokens", PageMethods({"GET": self._list, "POST": self._make})),
            Route("/tokens/revoke", PageMethods({"POST": self._revoke})),
        ]

    async def _list(self, request: Request) -> Response:
        try:
            await self._admin(request)
        except NoTokenError:
            return await to_login(self._access, request)
        return await self._page(request)

    async def _make(self, request: Request) -> Response:
        """Make a token, and show it this once: only its hash is kept."""
        admin = await self._admin(request)
        form = await form_fields(request, secret_of_session(request))
        secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        try:
            create = partial(create_token, new=_new(form, admin.name), secret=secret)
            token = await run_in_threadpool(in_transaction, self._access.engine, create)
        except (InvalidInputError, TokenExistsError) as error:
            return await self._page(request, error, form)
        return await self._page(request, new_token_row=filled("made", name=token.name, secret=secret))

    async def _revoke(self, request: Request) -> Response:
        """Revoke the token whose name was typed to confirm it."""
        admin = await self._admin(request)
        form = await form_fields(request, secret_of_session(request))
        name = form.get("name", "")
        if form.get("confirm") != name:
            return await self._page(request, InvalidInputError(f"type {name} to revoke it", field="confirm"))
        try:
            revoke = partial(revoke_token, name=name, actor=admin.name)
            await run_in_threadpool(in_transaction, self._access.engine, revoke)
        except TokenNotFoundError as error:
            return await self._page(request, error)
        return RedirectResponse("/tokens", 303, HEADERS)

    async def _admin(self, request: Request) -> Token:
        """The token of the session. Raises NotAllowedError for any but an admin's for all deployments."""
        token = await self._access.of_session(request)
        token.refuse_below(Role.ADMIN)
        token.refuse_others(None)
        return token

    async def _page(
        self,
        request: Request,
        wrong: RollwayError | None = None,
        form: Mapping[str, str] | None = None,
        new_token_row: str = "",
    ) -> Response:
        carried, form = form_token(secret_of_session(request)), form or {}
        tokens = await run_in_threadpool(in_transaction, self._access.engine, all_tokens)
        return page(
            "tokens",
            422 if wrong else 200,
            rows=new_token_row + "".join(_row(token, carried) for token in tokens),
            wrong=wrong.message if wrong else "",
            form_token=carried,
            name=form.get("name", ""),
            deployments=form.get("deployments", ""),
            days=form.get("days", f"{Role.VIEWER.usual_days:g}"),
        )


def _new(form: Mapping[str, str], actor: str) -> NewToken:
    """The token of the form. Raises InvalidInputError, which names each wrong field."""
    fields = {name: form.get(name, "") for name in ("name", "role")}
    deployments = tuple(form.get("deployments", "").replace(",", " ").split())
    try:
        return NewToken.model_validate(
            {**fields, "deployments": deployments, "days": form.get("days") or None, "actor": actor}
        )
    except ValidationError as error:
        raise InvalidInputError.of(error, model=NewToken) from None


def _row(token: Token, carried: str) -> str:
    return filled(
        "token",
        form_token=carried,
        name=token.name,
        pattern=token.name.replace(".", "\\.").replace("-", "\\-"),
        role=token.role,
        deployments=", ".join(token.deployments) or "all deployments",
        by=token.created_by,
        **instants(made=token.created_at, used=token.last_used_at, ends=token.expires_at),
    )
