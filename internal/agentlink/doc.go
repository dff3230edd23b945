// Package agentlink is the door for host agents: the WebSocket GET /agent, with the messages of package agentproto. Both the official agent
// and `muster agent` connect to it.
//
// It translates and authorizes; the core decides. An agent connects for one compute with that compute's auth token, or as a host that has
// joined. A compute may have several open connections for a while; the newest one receives the pushes.
//
// Path of a request: incoming.Message on the connection's reading goroutine → a task of the link, in order, on a goroutine that lives as
// long as there are tasks → link.handle. Path of a push: a committed event (follow), or the state for an agent that connects (pushOwed).
// watch finds work that is due at a time (pings, dead connections).
//
// Lock order: Server.mu, then link.mu. No lock is held across calls that may block.
package agentlink
