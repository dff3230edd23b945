// Package partners declares the calls of trusted servers: those of the studio's backend about players, games and subscriptions, and
// those of game servers, each about its own game.
package partners
