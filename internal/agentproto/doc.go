// Package agentproto has the messages of the agent protocol, as Go types, for both of its sides: the door at which agents connect, and
// `muster agent`. The official agent speaks it over the WebSocket GET /agent; `muster agent` adds members and actions of its own, which
// the service uses only on connections that announced them (AgentKind=native&AgentProto=1 in the query).
//
// A message is one JSON object in a text frame. Agents send requests, which have a RequestId; the service sends answers, which repeat
// Action and RequestId and have a StatusCode, and pushes, which have neither RequestId nor StatusCode and get no answer. Readers match
// member names in any case and ignore unknown members. Lists are always present. What is unset is null in the official requests and
// absent elsewhere.
//
// Decoding checks every member against a limit (limits.go); an error names the member, its value and what was expected.
package agentproto
