// Package authentication finds out who makes a request. Players show an access token; trusted servers and operators show an access key,
// itself or by a client certificate; game servers show a token for the calls of their own game.
//
// It also verifies who a player is at the login. That token comes from the studio's identity provider (OIDC), is signed by the
// studio's backend with a configured key (LoginKeys), is a login ticket that the backend has fetched for the player, or, in
// development, merely states a name.
package authentication
