// Package serverlink is the door for game servers: the WebSocket protocol of the official server SDKs 5.x.
//
// It translates and authorizes; the core decides. docs/spec/server-sdk.md describes what real game servers require.
//
// Path of a request: incoming.Message on the connection's reading goroutine → readRequest → link.receive, which never blocks
// → a task of the link → link.handle, in order, on a goroutine that lives as long as there are tasks → link.reply. Path of a
// push: a committed event (follow) or, for a process that connects, the state (pushOwed) → a task of the process's current
// link. watch finds work that is due at a time (pings, silence, tokens, old connections).
//
// Lock order: Server.mu, process.mu, then link.work and link.out. No lock is held across calls that may block: the engine or
// a socket.
package serverlink
