// Package operators declares the calls of operators: what holds a player and how to free the player, the configuration, and
// maintenance. Every call needs a reason, and is logged.
package operators
