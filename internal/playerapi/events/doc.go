// Package events writes the messages of the core to players, game servers and the studio as events of the API. Each type of event has one
// Go type, from which the documents are also generated.
package events
