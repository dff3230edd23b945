// Package search is the language in which clients ask for game sessions: a filter such as
//
//	hasAvailablePlayerSessions=true AND gameSessionProperties.mode = 'ffa'
//
// and an order such as "playerSessionCount DESC". It reads both, says where and why a text is not one, and knows what
// they mean for one game session. Finding the sessions of a fleet without looking at each is the work of searchindex.
//
// Source: the API reference of SearchGameSessions. Where it is silent see B060 to B064.
package search
