// Package objects defines the JSON objects of the player API, with its identifiers, instants and paths, and writes the state of the
// core as these objects.
package objects
