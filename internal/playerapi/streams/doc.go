// Package streams carries the events of players to their clients: over a WebSocket, or by long poll. The core keeps the events that
// each player is owed, so a client that was away gets what it missed, and a client that reads too slowly is closed and comes back.
//
// Of a player's streams the latest one counts, and it belongs to the login session with the highest epoch. All streams share one
// follower of the journal, one goroutine that sends heartbeats, and the buffers of events on their way: an idle stream has none.
package streams
