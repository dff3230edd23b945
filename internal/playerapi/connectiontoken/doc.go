// Package connectiontoken signs and verifies connection tokens: the JWTs by which a game server recognises a player who
// connects. They are signed with EdDSA. A reservation always has the same token, so the service stores none of them.
package connectiontoken
