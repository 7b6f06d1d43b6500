// An authorization server by oidc-provider, which NODE_PATH's folder has. Arguments: the format of access tokens (`jwt` or `opaque`),
// the resource that they are for, its scopes. Prints its issuer, and ends with its stdin.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const here = createRequire(`${process.env.DISCREET_OIDC_PROVIDER}/`);
const { Provider } = await import(pathToFileURL(here.resolve("oidc-provider")));
const [format, resource, scope] = process.argv.slice(2);

const server = createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const machine = { grant_types: ["client_credentials"], redirect_uris: [], response_types: [] };
const provider = new Provider(issuer, {
  clients: [
    { client_id: "robot", client_secret: "s3cret-of-the-robot", ...machine },
    { client_id: "daemon", client_secret: "s3cret-of-the-daemon", ...machine },
  ],
  cookies: { keys: ["not a secret"] },
  features: {
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === "daemon" },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, asked) => ({ scope, audience: asked, accessTokenFormat: format }),
    },
  },
  scopes: ["openid", "offline_access", ...scope.split(" ")],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  ttl: { AccessToken: 600, ClientCredentials: 600, Grant: 600, Interaction: 600, Session: 600 },
});
server.on("request", provider.callback());
process.stdin.resume().on("end", () => process.exit(0));
console.log(issuer);
