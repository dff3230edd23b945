// Package state is the engine as the player API uses it. Commands carry the principal of their request and are counted, reads
// return objects of the API, and the configuration of player flow in force is cached.
package state
