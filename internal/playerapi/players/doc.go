// Package players declares the calls of players' clients: login sessions, parties, searches for a match, and the player's game.
// Where the operator has configured hooks, a call asks the studio's backend before the core carries it out.
package players
