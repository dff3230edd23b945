// Package serverlink is the door of game servers: the WebSocket protocol that the official server SDKs 5.x speak.
//
// It translates and authorises; the core decides. The requirements of real game servers are in
// docs/spec/server-sdk.md.
//
// The way of a request: events.OnMessage on the connection's reading goroutine → readRequest → link.receive, which never
// waits → a task of the link → link.handle, in order, on a goroutine that lives as long as there are tasks → link.reply.
// The way of a push: a committed event (follow) or, for a process that connects, the state (pushOwed) → a task of the
// process's current link. What is due at a time (pings, silence, tokens, old connections) is found by watch.
//
// Locks: Server.mu before process.mu before link.work and link.out. None is held over what may wait, the engine or a socket.
package serverlink
