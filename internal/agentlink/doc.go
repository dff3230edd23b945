// Package agentlink is the door of host agents: the WebSocket GET /agent, with the messages of package agentproto. Both the official agent
// and `muster agent` come here.
//
// It translates and authorises; the core decides. An agent connects for one compute, with the auth token of that compute. Several
// connections of a compute may be open for a while; the newest one gets the pushes.
//
// The way of a request: incoming.Message on the connection's reading goroutine → a task of the link, in order, on a goroutine that lives as
// long as there are tasks → link.handle. The way of a push: a committed event (follow), or the state for an agent that connects (owed).
// What is due at a time (pings, dead connections) is found by watch.
//
// Locks: Server.mu before link.mu. None is held over what may wait.
package agentlink
