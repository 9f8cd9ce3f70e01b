"""A stand-in for an OAuth 2.1 authorization server on a port of this machine."""

import asyncio
import json
import time
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlencode

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from roomlore_server.http.server import bind

PATH = "/realms/tea"


class AuthorizationServer:
    """Registers every client and grants `user` the scopes `granted`. It counts what it is asked for."""

    def __init__(self, address: str) -> None:
        self.issuer = f"{address}{PATH}"
        self.user = "anna"
        self.granted = "roomlore:read roomlore:write"
        self.told_issuer = self.issuer
        self.published_beside: dict[str, object] = {}
        self.keyless_first = False
        self.broken = False
        self.asked: list[str] = []
        self.resources: list[str] = []
        self.wanted: list[str] = []
        self.keys = {"one": rsa.generate_private_key(public_exponent=65537, key_size=2048)}

    def token(self, audience: str, *, key: str = "one", header: dict | None = None, **claims: object) -> str:
        """Return a signed token. A claim that is None is left out."""
        said = {
            "iss": self.issuer, "aud": audience, "sub": self.user, "scope": self.granted, "iat": int(time.time()),
            "exp": int(time.time()) + 300, **claims,
        }  # fmt: skip
        kept = {name: value for name, value in said.items() if value is not None}
        algorithm = "RS256" if isinstance(self.keys[key], rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(kept, self.keys[key], algorithm, headers={"kid": key, **(header or {})})

    def published(self) -> list[dict]:
        return [
            {**json.loads(_algorithm(key).to_jwk(key.public_key())), "kid": name, "use": "sig"}
            for name, key in self.keys.items()
        ]

    def app(self) -> Starlette:
        async def metadata(request):
            self.asked.append("metadata")
            keyless = self.keyless_first and "oauth-authorization-server" in request.url.path
            return JSONResponse(
                {
                    "issuer": self.told_issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "registration_endpoint": f"{self.issuer}/register",
                    "jwks_uri": f"{self.issuer}/keys",
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    **self.published_beside,
                    **({"jwks_uri": None} if keyless else {}),
                }
            )

        async def openid(request):
            return await metadata(request) if self.keyless_first else Response(status_code=404)

        async def keys(_):
            self.asked.append("keys")
            return Response("<html>", 500) if self.broken else JSONResponse({"keys": self.published()})

        async def register(request):
            return JSONResponse({**await request.json(), "client_id": "host"}, 201)

        async def authorize(request):
            self.resources.append(request.query_params["resource"])
            self.wanted.append(request.query_params["scope"])
            back = urlencode({"code": "granted", "state": request.query_params["state"]})
            return RedirectResponse(f"{request.query_params['redirect_uri']}?{back}")

        async def token(request):
            asked = parse_qs((await request.body()).decode())
            made = self.token(asked["resource"][0])
            return JSONResponse(
                {"access_token": made, "token_type": "Bearer", "expires_in": 300, "scope": self.granted}
            )

        return Starlette(
            routes=[
                Route(f"/.well-known/oauth-authorization-server{PATH}", metadata),
                Route(f"{PATH}/.well-known/openid-configuration", openid),
                Route(f"{PATH}/keys", keys),
                Route(f"{PATH}/register", register, methods=["POST"]),
                Route(f"{PATH}/authorize", authorize),
                Route(f"{PATH}/token", token, methods=["POST"]),
            ]
        )


def _algorithm(key):
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return jwt.algorithms.ECAlgorithm
    return jwt.algorithms.RSAAlgorithm


@asynccontextmanager
async def authorization_server():
    door = bind("127.0.0.1", 0)
    standing = AuthorizationServer(f"http://127.0.0.1:{door.getsockname()[1]}")
    server = uvicorn.Server(uvicorn.Config(standing.app(), log_config=None, access_log=False, lifespan="off"))
    serving = asyncio.create_task(server.serve([door]))
    try:
        yield standing
    finally:
        server.should_exit = True
        await serving
