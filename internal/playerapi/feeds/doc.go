// Package feeds tells those who are not players what happens: a game server hears of the players of its game, a backend of the studio
// subscribes to the events of all players, by a stream or a webhook. The core keeps what is not acknowledged, so a feed holds
// no events: it reads from the state as fast as its receiver takes them.
package feeds
