// Package objects defines how the player API writes identifiers and instants.
package objects
