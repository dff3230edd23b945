// Package events writes what the core tells players, game servers and the studio as events of the API. Each type of event has one Go
// type, from which the documents are made, too.
package events
