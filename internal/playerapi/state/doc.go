// Package state is the engine as the player API uses it. Commands carry the principal of their request and are counted; reads
// return objects of the API; the configuration of player flow is kept as it is in force.
package state
