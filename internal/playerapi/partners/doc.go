// Package partners declares the calls of trusted servers: of the studio's backend, about players, games and subscriptions, and of game
// servers, each about its own game.
package partners
