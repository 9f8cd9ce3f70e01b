// Serves oidc-provider, an OpenID Connect server, with its own pages to sign in and to agree, and prints its address.

import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const [resource] = process.argv.slice(2);
const scope = "roomlore:read roomlore:write";
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    scopes: ["openid", "offline_access", ...scope.split(" ")],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    features: {
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ scope, audience: resource, accessTokenFormat: "jwt", accessTokenTTL: 300 }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
