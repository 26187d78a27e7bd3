"""Where settings come from: an argument, then the environment, then a default."""

from __future__ import annotations

import base64
import json
import os
from typing import Any, cast

import httpx


def base_url(argument: str | None) -> str:
    """`HEARBACK_URL`, or the bundle on this machine. Raises `ValueError` for anything but an HTTP origin or prefix."""
    text = argument or os.environ.get("HEARBACK_URL") or "http://127.0.0.1:3000"
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError("the URL of Hearback must begin with http:// or https:// and a host")
    if url.userinfo or url.query or url.fragment:
        raise ValueError("the URL of Hearback must have no user, query or fragment")
    return text.rstrip("/")


def tenant(argument: str | None, token: str) -> str:
    """`HEARBACK_TENANT`, or the claim of the token. Raises `ValueError` if there is none."""
    name = argument or os.environ.get("HEARBACK_TENANT")
    if name:
        return name
    claims = _claims(token)
    if claims is None:
        raise ValueError("no tenant: the token is not a JWT, which would name it; pass it, or set HEARBACK_TENANT")
    claimed = claims.get("tenant")
    if not isinstance(claimed, str) or not claimed:
        raise ValueError("no tenant: the token has no claim `tenant`; pass it, or set HEARBACK_TENANT")
    return claimed


def _claims(token: str) -> dict[str, Any] | None:
    """The claims of a JWT, unverified: the server decides whether the token is valid."""
    try:
        payload = token.split(".")[1]
        claims: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return None
    return cast(dict[str, Any], claims) if isinstance(claims, dict) else None
