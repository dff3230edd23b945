// Package principal says who a request of the player API is made by: a player's login session, an access key, or a game server.
// The context of a call carries it.
package principal
