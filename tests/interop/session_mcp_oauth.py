"""A session of MCP's own Python SDK with a daemon that wants tokens of an authorization server. Run by whichever Python has mcp.

First a user signs in, then a client comes with credentials of its own. The arguments are the URL of the endpoint, and the issuer.
"""

import re
import sys
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

CALLBACK = "http://127.0.0.1:9/callback"
GRANTED_FIRST = "shop:write"


def say(name: str, what: object) -> None:
    print(f"{name}={what}", flush=True)


class Storage:
    """Keeps what the client has got."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class User:
    """Signs in as ada, and agrees to whatever is asked; the first time to one scope only."""

    def __init__(self) -> None:
        self.asked = 0
        self.came: dict[str, list[str]] = {}
        self.browser = httpx2.AsyncClient()

    async def visit(self, url: str) -> None:
        self.asked += 1
        if self.asked == 1:
            parts = urlsplit(url)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            url = parts._replace(query=urlencode({**query, "scope": GRANTED_FIRST})).geturl()
        answer = await self.browser.get(url)
        for _ in range(20):
            if answer.status_code in (302, 303):
                url = urljoin(str(answer.url), answer.headers["location"])
                if url.startswith(CALLBACK):
                    self.came = parse_qs(urlsplit(url).query)
                    return
                answer = await self.browser.get(url)
            else:
                action = re.search(r'<form[^>]*action="([^"]+)"', answer.text)[1]
                prompt = re.search(r'name="prompt" value="([^"]+)"', answer.text)[1]
                form = {"prompt": prompt, **({"login": "ada", "password": "any"} if prompt == "login" else {})}
                answer = await self.browser.post(urljoin(str(answer.url), action), data=form)

    async def come_back(self) -> AuthorizationCodeResult:
        found = {name: values[0] for name, values in self.came.items()}
        return AuthorizationCodeResult(**{name: found[name] for name in ("code", "state", "iss") if name in found})


async def session(grant: str, auth: httpx2.Auth, url: str, tools: list[str]) -> None:
    async with (
        httpx2.AsyncClient(auth=auth, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        say(f"{grant} lists", sorted(tool.name for tool in (await client.list_tools()).tools))
        for tool in tools:
            say(f"{grant} {tool}", (await client.call_tool(tool, {})).content[0].text)


async def main(url: str, issuer: str) -> None:
    user = User()
    told = OAuthClientMetadata(client_name="session", redirect_uris=[CALLBACK], grant_types=["authorization_code"])
    signs_in = OAuthClientProvider(url, told, Storage(), user.visit, user.come_back)
    await session("user", signs_in, url, ["shop_look", "shop_order", "shop_close"])
    say("asked", user.asked)
    robot = ClientCredentialsOAuthProvider(
        url, Storage(), client_id="robot", client_secret="s3cret-of-the-robot", scope="shop:write", issuer=issuer
    )
    await session("robot", robot, url, ["shop_look", "shop_order"])


anyio.run(main, *sys.argv[1:])
