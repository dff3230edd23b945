// Package streams carries the events of players to their clients, over a WebSocket or by long poll. The core keeps the events that
// each player is owed. A client that was away gets what it missed; the stream of a client that reads too slowly is closed, and the
// client reconnects.
//
// A player has at most one stream, the latest, which belongs to the login session with the highest epoch. All streams share one
// follower of the journal, one goroutine that sends heartbeats, and the buffers of events in transit: an idle stream has none.
package streams
