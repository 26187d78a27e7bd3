// An OpenID provider with one public client, for the tests of the console. Its access tokens are signed as the local
// bundle expects them.
import http from "node:http";

import { Provider } from "oidc-provider";

const { CONSOLE, TOKEN_KEY, CLAIMS, LIFETIME, ISSUER, AUDIENCE, PORT } = process.env;
const claims = JSON.parse(CLAIMS);
const server = http.createServer();
server.listen(Number(PORT), "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "console",
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token"],
        redirect_uris: [`${CONSOLE}/console`],
        application_type: "native",
      },
    ],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    scopes: ["openid", "offline_access", "feedback:report"],
    features: {
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: "feedback:report",
          accessTokenFormat: "jwt",
          accessTokenTTL: Number(LIFETIME),
          jwt: { sign: { alg: "HS256", key: Buffer.from(TOKEN_KEY) } },
        }),
        useGrantedResource: () => true,
      },
    },
    extraTokenClaims: () => claims,
    formats: {
      customizers: {
        // What the local bundle expects of its own tokens.
        jwt: (_, __, { payload }) => Object.assign(payload, { iss: ISSUER, aud: AUDIENCE }),
      },
    },
    issueRefreshToken: () => true,
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
