// Package authentication authenticates requests. Players present an access token. Trusted servers and operators present an access key
// or a client certificate that names one. Game servers present a token for the calls of their own game.
//
// It also verifies the identity of a player at the login. That token comes from the studio's identity provider (OIDC), is signed by the
// studio's backend with a configured key (LoginKeys), is a login ticket that the backend has fetched for the player, or, in
// development, merely states a name.
package authentication
