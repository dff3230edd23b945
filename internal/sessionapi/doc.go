// Package sessionapi is the door of visual scripting: each node of a session script (CreateSession, JoinSession, …) is one
// plain HTTP call with JSON both ways, so that a node editor, a Blueprint or a GDScript needs only an HTTP client.
//
// With ?async=1 a node answers at once with a call id. The call completes exactly once: its outcome is an event on the
// caller's stream, and the answer to a poll, for as long as it is kept.
package sessionapi
