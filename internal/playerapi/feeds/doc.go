// Package feeds sends events to recipients other than players: a game server gets notices about the players of its game, and a backend of
// the studio subscribes to the events of all players, by a stream or a webhook. The core stores unacknowledged events, so a feed holds
// none: it reads from the state as fast as its receiver takes them.
package feeds
