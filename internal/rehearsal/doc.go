// Package rehearsal tries rule sets inside a running service, with the engine of muster simulate: on an invented population, on arrivals that a person pastes, and on the
// tickets of the last hour. Each trial is limited in tickets, values, time and its share of one processor, and a node runs one trial at a time.
package rehearsal
