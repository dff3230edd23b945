// Package search implements the language in which clients search for game sessions: a filter such as
//
//	hasAvailablePlayerSessions=true AND gameSessionProperties.mode = 'ffa'
//
// and an order such as "playerSessionCount DESC". It parses both, reports where and why a text is invalid, and evaluates them for one
// game session. Package searchindex searches a fleet without reading each game session.
//
// Source: the API reference of SearchGameSessions. For what it leaves open see B060 to B064.
package search
