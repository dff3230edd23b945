// Package principal identifies the caller of a player API request: a player's login session, an access key, or a game server. The
// principal is in the context of a call.
package principal
