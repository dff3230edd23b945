// Package authentication verifies who a player is when a client logs in. A token comes from the studio's identity provider
// (OIDC), is signed by the studio's backend with a key that the operator has configured (LoginKeys), is a login ticket that
// the backend has fetched for the player, or, in development, merely states a name.
package authentication
